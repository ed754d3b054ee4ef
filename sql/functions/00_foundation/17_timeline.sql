-- Runs of the server: after each start, and on each timeline, what others have read may be forgotten. A promotion and a
-- recovery to a point in time begin a timeline; where a copy of the files is put back, only the server starts anew.

DO $probe$
DECLARE
    expression text := $$('x' || left(pg_walfile_name('0/0'), 8))::bit(32)::bigint$$;
BEGIN
    BEGIN
        PERFORM pg_walfile_name('0/0');
    EXCEPTION WHEN OTHERS THEN
        expression := 'NULL::bigint';
    END;
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION pgtrickle_private.current_timeline() RETURNS bigint '
        'LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp AS %L',
        format('BEGIN RETURN %s; END', expression));
END
$probe$;
COMMENT ON FUNCTION pgtrickle_private.current_timeline() IS
    'The timeline that the server writes; NULL where the platform refuses to say it (probed at install).';

CREATE OR REPLACE FUNCTION pgtrickle_private.current_run() RETURNS bigint
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint + COALESCE(current_timeline(), 0)
$$;
COMMENT ON FUNCTION pgtrickle_private.current_run() IS
    'A number that is another one after each start of the server, and on each timeline.';

-- Whoever follows a table keeps a version of his own, which may be later than any in a dump, in a copy of the files, or
-- on a standby that was promoted: were its number given again, he would go on from there. No database counts a million
-- versions a second.
CREATE OR REPLACE FUNCTION pgtrickle_private.number_versions_anew() RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT setval(s.numbers, greatest(nextval(s.numbers), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint))
    FROM (VALUES (pg_get_serial_sequence('pgtrickle.pgt_watermark_history', 'history_id')::regclass),
        (pg_get_serial_sequence('pgtrickle.pgt_versions', 'version')::regclass)) AS s (numbers)
$$;
COMMENT ON FUNCTION pgtrickle_private.number_versions_anew() IS
    'Has later versions get numbers that none had before, in whatever database this one was restored from.';

-- One at a time, or the later one would set the numbers back to where the earlier one set them. But a loader's
-- transaction may be long: what is rolled back is the lock alone, for what is set in a sequence stays.
CREATE OR REPLACE FUNCTION pgtrickle_private.begin_run(run bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    known bigint;
BEGIN
    PERFORM FROM pgt_clusters FOR UPDATE;
    SELECT t.last_value INTO known FROM pgt_timeline AS t;
    IF known NOT IN (0, run) THEN
        PERFORM number_versions_anew();
    END IF;
    PERFORM setval('pgtrickle.pgt_timeline', run);
    RAISE EXCEPTION 'the lock is given back' USING ERRCODE = 'triggered_action_exception', CONSTRAINT = 'heeded';
EXCEPTION WHEN triggered_action_exception THEN
    RETURN;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.begin_run(bigint) IS
    'Has versions get numbers that were not given in an earlier run of the server.';

CREATE OR REPLACE FUNCTION pgtrickle_private.heed_run() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    run CONSTANT bigint := current_run();
BEGIN
    IF run <> (SELECT t.last_value FROM pgt_timeline AS t) THEN
        PERFORM begin_run(run);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.heed_run() IS
    'Before a version gets its number: notices that the server was started or promoted since the last one did.';
