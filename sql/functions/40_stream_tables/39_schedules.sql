-- Schedules: which there are, and when one makes a stream table due.

CREATE OR REPLACE FUNCTION pgtrickle_private.is_timezone(name text) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN now() AT TIME ZONE name IS NOT NULL;
EXCEPTION WHEN invalid_parameter_value THEN
    RETURN false;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.is_timezone(text) IS 'Whether PostgreSQL knows a time zone.';

CREATE OR REPLACE FUNCTION pgtrickle_private.is_period(schedule text) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
BEGIN
    -- PostgreSQL overlooks signs that an interval does not need: it would read '*/10' as ten seconds.
    RETURN schedule ~ '^\s*@?(\s*[-+]?\.?[0-9A-Za-z]([-+.:]*[0-9A-Za-z])*((?<=[A-Za-z]),)?)+\s*$'
        AND isfinite(schedule::interval) AND schedule::interval > interval '0';
EXCEPTION WHEN data_exception THEN
    RETURN false;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.is_period(text) IS
    'Whether a schedule is an interval that can lie between refreshes.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_schedule(schedule text, schedule_timezone text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF NOT COALESCE(is_timezone(schedule_timezone), false) THEN
        PERFORM refuse_value('schedule_timezone', schedule_timezone,
            'Use a name that pg_timezone_names lists, such as ''Europe/Berlin''.');
    ELSIF cron_expression(schedule) IS NOT NULL THEN
        PERFORM check_cron(schedule, schedule_timezone);
    ELSIF (schedule = 'calculated' OR is_period(schedule)) IS NOT TRUE THEN
        PERFORM refuse_value('schedule', schedule,
            'Use ''calculated'' (refresh when a source changed), an interval such as ''5 minutes'', a cron expression '
                'of five fields such as '
            '''0 6 * * mon-fri'' or of six that begin with the seconds, or @hourly, @daily, @weekly, @monthly, '
                '@yearly.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_schedule(text, text) IS
    'Error 22023, or 22004 for NULL, unless the schedule and its time zone are valid.';

CREATE OR REPLACE FUNCTION pgtrickle_private.tier_factor(tier text) RETURNS integer
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE tier WHEN 'hot' THEN 1 WHEN 'warm' THEN 2 WHEN 'cold' THEN 10 END
$$;
COMMENT ON FUNCTION pgtrickle_private.tier_factor(text) IS
    'By which factor a tier stretches a schedule; NULL for frozen.';

-- PL/pgSQL, although one expression, as is the next one: its plan is kept, and every tick asks for every stream table.
CREATE OR REPLACE FUNCTION pgtrickle_private.is_running(t pgtrickle.pgt_stream_tables) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN NOT (t).paused AND (t).tier <> 'frozen' AND NOT EXISTS (SELECT FROM pgt_drain AS d WHERE d.active);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.is_running(pgtrickle.pgt_stream_tables) IS
    'Whether a stream table is neither paused nor frozen, nor all are drained.';

-- A failure lies ahead only after the clock was set back, or was noted since this transaction began.
CREATE OR REPLACE FUNCTION pgtrickle_private.waits_after_failure(t pgtrickle.pgt_stream_tables) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (t).retry_at > now() AND ((t).last_error_at > now() + interval '1 minute') IS NOT TRUE;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.waits_after_failure(pgtrickle.pgt_stream_tables) IS
    'Whether a stream table is left alone for a while since its last refresh failed.';

-- Compared with the start of the reading transaction, not with the clock: that moment becomes last_refresh_at, which
-- must not lie before the moment it serves. last_refresh_at lies ahead only after the clock was set back.
CREATE OR REPLACE FUNCTION pgtrickle_private.is_due(t pgtrickle.pgt_stream_tables,
    poll_interval interval DEFAULT '1 second') RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN CASE
        WHEN NOT is_running(t) OR (t).status = 'SUSPENDED' OR waits_after_failure(t) THEN false
        WHEN (t).frontier_version = 0 OR (t).last_refresh_at IS NULL THEN true
        WHEN (t).schedule = 'calculated' AND (t).tier = 'hot' THEN true
        WHEN cron_expression((t).schedule) IS NOT NULL
        THEN COALESCE((t).next_due_at <= now() AND (t).last_refresh_at NOT BETWEEN (t).next_due_at AND now(), false)
        ELSE now() < (t).last_refresh_at
            OR now() >= (t).last_refresh_at
                + tier_factor((t).tier) * CASE (t).schedule WHEN 'calculated' THEN poll_interval
                    ELSE least((t).schedule::interval, interval '1000 years') END
        END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.is_due(pgtrickle.pgt_stream_tables, interval) IS
    'Whether a tick takes up a stream table: at once until it is filled, then by its schedule and tier, never while '
    'it is paused, frozen, '
    'suspended, or waits after a failure. '
    'calculated is always due, and the tick looks for changes; in tier warm and cold not again before 2 and 10 poll '
    'intervals.';

CREATE OR REPLACE FUNCTION pgtrickle_private.awaited_moments()
    RETURNS TABLE (pgt_id bigint, schedule text, schedule_timezone text, tier text, expression text, after timestamptz,
        nth integer)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT t.pgt_id, t.schedule, t.schedule_timezone, t.tier, cron_expression(t.schedule),
           CASE WHEN t.last_refresh_at BETWEEN t.next_due_at AND now() THEN t.last_refresh_at ELSE now() END,
               tier_factor(t.tier)
    FROM pgt_stream_tables AS t
    WHERE t.schedule <> 'calculated' AND cron_expression(t.schedule) IS NOT NULL AND is_running(t)
        AND (t.next_due_at IS NULL OR t.last_refresh_at BETWEEN t.next_due_at AND now()
             -- The clock was set back.
             OR (t.last_refresh_at > now() AND t.next_due_at > now()));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.awaited_moments() IS
    'The cron schedules whose next moment is to be worked out: the nth one after a given moment, which is now, or '
    'when the last one was served.';
