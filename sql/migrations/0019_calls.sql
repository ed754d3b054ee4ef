-- What is written for the pg_trickle extension runs here. Run once and never edited afterwards.

-- Batch numbers have a function of their own, advance_batch(): beside these two no driver could find out the types of
-- advance_watermark($1, $2).
DROP FUNCTION IF EXISTS pgtrickle.advance_watermark(regclass, bigint);
DROP FUNCTION IF EXISTS pgtrickle.advance_watermark(regclass, text);

-- A cron expression may say the second too.
DROP FUNCTION IF EXISTS pgtrickle_private.cron_fields(text);

-- What creates and alters stream tables takes pg_trickle's arguments, in its order, before ours; groups take seconds.
DO $$
DECLARE
    changed regprocedure;
BEGIN
    FOR changed IN
        SELECT p.oid FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = 'pgtrickle'::regnamespace AND p.proname IN ('create_stream_table', 'alter_stream_table')
    LOOP
        EXECUTE format('DROP FUNCTION %s', changed);
    END LOOP;
END
$$;

-- Who asks for a refresh can wait for it.
DROP FUNCTION IF EXISTS pgtrickle.refresh_stream_table(text, text);

CREATE TABLE pgtrickle.pgt_refresh_secret (
    secret bytea NOT NULL
);
COMMENT ON TABLE pgtrickle.pgt_refresh_secret IS
    'What makes the locks by which a refresh is asked for; who may not ask may not read it.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_secret.secret IS 'Random; in one row.';
INSERT INTO pgtrickle.pgt_refresh_secret (secret)
VALUES (sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')));

CREATE TABLE pgtrickle.pgt_refresh_answers (
    request_key bigint PRIMARY KEY,
    action text NOT NULL,
    reason text,
    error text,
    answered_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE pgtrickle.pgt_refresh_answers IS
    'What came of refreshes for which somebody waits; deleted when nobody waits any more.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_answers.request_key IS 'The lock by which it was asked for.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_answers.action IS 'What the refresh did.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_answers.reason IS 'Why.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_answers.error IS 'How it failed, without values of rows.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_answers.answered_at IS 'When.';

CREATE UNLOGGED SEQUENCE pgtrickle.pgt_refresh_calls;
COMMENT ON SEQUENCE pgtrickle.pgt_refresh_calls IS
    'Moves when somebody asks for a refresh and waits: a refresher sees it before that transaction commits.';
