-- Keeping ticks from refreshing anything, and waiting until they have stopped.

CREATE OR REPLACE FUNCTION pgtrickle_private.drain_lasts() RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT EXISTS (SELECT FROM pgt_drain AS d WHERE d.active)
$$;
COMMENT ON FUNCTION pgtrickle_private.drain_lasts() IS 'Whether ticks leave out everything until resume_after_drain().';

-- The refresher learns of it before the commit, by a lock that lasts as long as the transaction: from then on the row
-- says the same. A tick that began later answers, so none from before is at work any more.
CREATE OR REPLACE FUNCTION pgtrickle_private.begin_drain(caller name, patience interval) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    quiet boolean := true;
BEGIN
    INSERT INTO pgt_drain AS d (active, complete, requested_at, requested_by)
    VALUES (true, false, clock_timestamp(), caller)
    ON CONFLICT (only_row) DO UPDATE SET active = true, complete = false, requested_at = EXCLUDED.requested_at,
        requested_by = EXCLUDED.requested_by;
    IF refresher_runs() THEN
        PERFORM pg_advisory_xact_lock(request_key(number, own_virtual_transaction()))
        FROM unnest('{-2,-1}'::bigint[]) AS number;
        quiet := (SELECT a.action NOT IN ('LATE') FROM ask_refresher(0, patience) AS a);
    END IF;
    UPDATE pgt_drain SET complete = quiet;
    RETURN quiet;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.begin_drain(name, interval) IS
    'Has ticks leave out everything, and says whether all that was under way ended in time.';

CREATE OR REPLACE FUNCTION pgtrickle_private.note_drained() RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    UPDATE pgt_drain SET complete = true WHERE active AND NOT complete
$$;
COMMENT ON FUNCTION pgtrickle_private.note_drained() IS
    'Notes that a drain is complete: called by ticks, which find nothing under way when they begin.';

CREATE OR REPLACE FUNCTION pgtrickle_private.end_drain() RETURNS boolean
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    UPDATE pgt_drain SET active = false WHERE active;
    IF FOUND THEN
        PERFORM tell('pgtrickle_refresh', '{"drain": false}');
    END IF;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.end_drain() IS 'Ends a drain; says whether there was one.';

CREATE OR REPLACE FUNCTION pgtrickle.is_drained() RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT active AND complete FROM pgt_drain
$$;
COMMENT ON FUNCTION pgtrickle.is_drained() IS
    'Whether nothing is refreshed by ticks since drain(), and nothing that had begun before is under way; NULL before '
    'the first drain.';

CREATE OR REPLACE FUNCTION pgtrickle.drain(timeout_s integer DEFAULT NULL) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF timeout_s < 0 THEN
        PERFORM refuse_value('timeout_s', timeout_s::text, 'Use 0 seconds or more, or NULL for the default.');
    END IF;
    RETURN begin_drain(current_user,
        make_interval(secs => COALESCE(timeout_s, foreign_setting('drain_timeout')::integer, 60)));
END
$$;
COMMENT ON FUNCTION pgtrickle.drain(integer) IS
    'Has ticks leave out all stream tables until resume_after_drain(), and waits up to so many seconds, by default '
    '60, for what is under way; says whether that ended. What is asked for explicitly is still refreshed.';

CREATE OR REPLACE FUNCTION pgtrickle.quiesce(timeout_s integer DEFAULT NULL) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN drain(timeout_s);
END
$$;
COMMENT ON FUNCTION pgtrickle.quiesce(integer) IS
    'The same as drain(). Changes are captured all the while.';

CREATE OR REPLACE FUNCTION pgtrickle.pause_all() RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN drain(60);
END
$$;
COMMENT ON FUNCTION pgtrickle.pause_all() IS
    'Has ticks leave out all stream tables until resume_all(): the same as drain(60). What was paused singly stays so.';

CREATE OR REPLACE FUNCTION pgtrickle.resume_after_drain() RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN end_drain();
END
$$;
COMMENT ON FUNCTION pgtrickle.resume_after_drain() IS
    'Has ticks refresh again after drain(); says whether there was one to end.';

CREATE OR REPLACE FUNCTION pgtrickle.resume_all() RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN end_drain();
END
$$;
COMMENT ON FUNCTION pgtrickle.resume_all() IS
    'The same as resume_after_drain(); what was paused by pause_stream_table() stays paused.';

CREATE OR REPLACE FUNCTION pgtrickle.pause_scheduler(nodes text[],
    search_path text DEFAULT current_setting('search_path'))
    RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM pause_stream_table(n, search_path) FROM unnest(nodes) AS n;
    RETURN 'paused';
END
$$;
COMMENT ON FUNCTION pgtrickle.pause_scheduler(text[], text) IS
    'The same as pause_stream_table() for several stream tables; returns the word paused.';

CREATE OR REPLACE FUNCTION pgtrickle.resume_scheduler(nodes text[],
    search_path text DEFAULT current_setting('search_path'))
    RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM resume_stream_table(n, search_path) FROM unnest(nodes) AS n;
    RETURN 'resumed';
END
$$;
COMMENT ON FUNCTION pgtrickle.resume_scheduler(text[], text) IS
    'The same as resume_stream_table() for several stream tables; returns the word resumed.';
