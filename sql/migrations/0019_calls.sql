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

CREATE TABLE pgtrickle.pgt_drain (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    active boolean NOT NULL,
    complete boolean NOT NULL,
    requested_at timestamptz NOT NULL,
    requested_by text NOT NULL
);
COMMENT ON TABLE pgtrickle.pgt_drain IS 'The last drain: while it is active, ticks leave out everything.';
COMMENT ON COLUMN pgtrickle.pgt_drain.only_row IS 'There is one row, or none before the first drain.';
COMMENT ON COLUMN pgtrickle.pgt_drain.active IS 'Whether it lasts.';
COMMENT ON COLUMN pgtrickle.pgt_drain.complete IS 'Whether nothing that had begun before is under way any more.';
COMMENT ON COLUMN pgtrickle.pgt_drain.requested_at IS 'When it was asked for.';
COMMENT ON COLUMN pgtrickle.pgt_drain.requested_by IS 'Role that asked.';

-- A source that is dropped leaves only its number behind.
ALTER TABLE pgtrickle.pgt_watermark_groups ADD COLUMN source_names text[];
COMMENT ON COLUMN pgtrickle.pgt_watermark_groups.source_names IS
    'The names of its sources, also of those that were dropped since.';
UPDATE pgtrickle.pgt_watermark_groups AS g
SET source_names = ARRAY(
    SELECT COALESCE(format('%I.%I', n.nspname, c.relname), w.source_name)
    FROM unnest(g.sources) WITH ORDINALITY AS s (source, place)
    LEFT JOIN pg_catalog.pg_class AS c ON c.oid = s.source
    LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pgtrickle.pgt_watermarks AS w ON w.source_relid = s.source
    ORDER BY s.place);

CREATE TABLE pgtrickle.pgt_subscriptions (
    stream_table text NOT NULL,
    channel text NOT NULL CHECK (length(channel) BETWEEN 1 AND 63),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (stream_table, channel)
);
COMMENT ON TABLE pgtrickle.pgt_subscriptions IS 'Who is notified when a stream table got other rows.';
COMMENT ON COLUMN pgtrickle.pgt_subscriptions.stream_table IS 'Its name, as it was given.';
COMMENT ON COLUMN pgtrickle.pgt_subscriptions.channel IS 'The channel of NOTIFY.';
COMMENT ON COLUMN pgtrickle.pgt_subscriptions.created_at IS 'Since when.';
