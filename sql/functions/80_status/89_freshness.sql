-- How far every stream table is behind its sources, and why.

CREATE OR REPLACE FUNCTION pgtrickle_private.stages(
        t pgtrickle.pgt_stream_tables, p_source regclass, xid xid8, pos bigint, runs boolean, refreshing timestamptz)
    RETURNS TABLE (place integer, cause text, culprit text, during tstzmultirange)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    stopped CONSTANT record := stopped_since(t);
    gate CONSTANT record := gated_during(t.pgt_id);
    held CONSTANT record := held_by_watermark(t, p_source, xid, pos,
        COALESCE(upper(gate.during) = 'infinity', false));
    due CONSTANT timestamptz := due_at(t);
    always CONSTANT tstzmultirange := tstzmultirange(tstzrange('-infinity', 'infinity'));
BEGIN
    RETURN QUERY
    VALUES (2, 'stopped', stopped.culprit, CASE WHEN stopped.since IS NULL THEN '{}'::tstzmultirange
            ELSE tstzmultirange(tstzrange(stopped.since, 'infinity')) END),
        (3, 'gate', gate.culprit, gate.during),
        (4, 'watermark', held.culprit, held.during),
        (5, 'schedule', CASE WHEN due > '-infinity' THEN effective_schedule(t) END,
            tstzmultirange(tstzrange('-infinity', due))),
        (6, 'refresh', format('%I.%I', t.pgt_schema, t.pgt_name), CASE WHEN refreshing IS NULL
            THEN '{}'::tstzmultirange ELSE tstzmultirange(tstzrange(refreshing, 'infinity')) END),
        (7, 'queue', CASE WHEN runs THEN 'the next tick' ELSE 'no refresher runs' END, always);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.stages(pgtrickle.pgt_stream_tables, regclass, xid8, bigint, boolean,
    timestamptz) IS
    'What may hold a change of a direct input, the graver before the lesser, each with the time during which it did: '
    'given whether a refresher runs, and since when it is being refreshed, if it is.';

-- PL/pgSQL, although one expression, as is lag_sentence(): its plan is kept, and both are asked for every stream table.
CREATE OR REPLACE FUNCTION pgtrickle_private.length_of(during tstzmultirange) RETURNS interval
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (SELECT COALESCE(sum(upper(r) - lower(r)), interval '0') FROM unnest(during) AS r);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.length_of(tstzmultirange) IS 'How long these ranges are together.';

-- Each cause gets what those before it left of the time since the change came: so nothing is counted twice, and nothing
-- is left out.
CREATE OR REPLACE FUNCTION pgtrickle_private.split_lag(
        t pgtrickle.pgt_stream_tables, missing record, input text, until timestamptz, runs boolean,
        refreshing timestamptz)
    RETURNS TABLE (place integer, cause text, culprit text, lasted interval)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    arrived CONSTANT timestamptz := CASE WHEN missing.input_id IS NULL
        THEN least(greatest(missing.arrived_at, missing.changed_at), until) ELSE until END;
    rest tstzmultirange := tstzmultirange(tstzrange(arrived, until));
    stage record;
BEGIN
    IF arrived > missing.changed_at THEN
        RETURN QUERY SELECT 1, 'inherited', input, arrived - missing.changed_at;
    END IF;
    IF isempty(rest) THEN
        RETURN;
    END IF;
    FOR stage IN
        SELECT s.* FROM stages(t, missing.source, missing.xid, missing.pos, runs, refreshing) AS s ORDER BY s.place
    LOOP
        IF NOT isempty(rest * stage.during) THEN
            RETURN QUERY SELECT stage.place, stage.cause, stage.culprit, length_of(rest * stage.during);
        END IF;
        rest := rest - stage.during;
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.split_lag(pgtrickle.pgt_stream_tables, record, text, timestamptz, boolean,
    timestamptz) IS
    'Divides the time since the oldest missing change came among what held it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.lag_sentence(cause text, culprit text, lasted interval) RETURNS text
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN format(CASE cause WHEN 'inherited' THEN '%s inherited from %s' WHEN 'stopped' THEN '%s stopped: %s'
            WHEN 'gate' THEN '%s under the gate of %s' WHEN 'watermark' THEN '%s waiting for the watermark of %s'
            WHEN 'schedule' THEN '%s until its schedule: %s' WHEN 'refresh' THEN '%s under refresh'
            ELSE '%s in the queue: %s' END,
        written_interval(date_trunc('milliseconds', lasted)), culprit);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.lag_sentence(text, text, interval) IS
    'Says how long a cause held a change, and who is to blame.';

CREATE OR REPLACE FUNCTION pgtrickle_private.lags(until timestamptz)
    RETURNS TABLE (pgt_id bigint, behind_since timestamptz, clock text, lag interval, waiting_for_watermark interval,
        at_gate interval, before_schedule interval, in_queue interval, in_refresh interval, inherited interval,
        stopped interval, cause text, culprit text, reason text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH refresher AS MATERIALIZED (
        SELECT refresher_runs() AS runs
    ), refreshing AS MATERIALIZED (
        SELECT r.pgt_id, min(r.since) AS since FROM refreshes_under_way() AS r GROUP BY r.pgt_id
    ), missing AS MATERIALIZED (
        SELECT m.*, until - least(m.changed_at, until) AS lag FROM oldest_missing() AS m
    ), parts AS MATERIALIZED (
        SELECT m.pgt_id, s.*, lag_sentence(s.cause, s.culprit, s.lasted) AS sentence
        FROM missing AS m JOIN pgt_stream_tables AS t USING (pgt_id) CROSS JOIN refresher AS b
            LEFT JOIN refreshing AS r USING (pgt_id) LEFT JOIN pgt_stream_tables AS i ON i.pgt_id = m.input_id
            CROSS JOIN LATERAL split_lag(
                t, m, qualified_name(COALESCE(i.pgt_relid, m.source)), until, b.runs, r.since) AS s
    ), gravest AS (
        SELECT DISTINCT ON (p.pgt_id) p.pgt_id, p.cause, p.culprit FROM parts AS p
        ORDER BY p.pgt_id, p.lasted DESC, p.place DESC
    ), summed AS (
        SELECT p.pgt_id, jsonb_object_agg(p.cause, p.lasted) AS lasted,
            string_agg(p.sentence, ', ' ORDER BY p.place) AS sentences
        FROM parts AS p GROUP BY p.pgt_id)
    SELECT m.pgt_id, m.changed_at, m.clock, m.lag, v.watermark, v.gate, v.schedule, v.queue, v.refresh, v.inherited,
        v.stopped, g.cause, g.culprit,
        CASE m.clock WHEN 'creation' THEN 'never filled' WHEN 'refresh' THEN 'perhaps behind' ELSE 'behind' END
        || COALESCE(': ' || s.sentences, '')
        || COALESCE(' (there ' || root.sentences || ')', '')
    FROM missing AS m LEFT JOIN gravest AS g USING (pgt_id) LEFT JOIN summed AS s USING (pgt_id)
        LEFT JOIN summed AS root ON root.pgt_id = m.culprit_id AND m.culprit_id <> m.pgt_id
        CROSS JOIN LATERAL (
            SELECT COALESCE((s.lasted ->> 'watermark')::interval, '0') AS watermark,
                COALESCE((s.lasted ->> 'gate')::interval, '0') AS gate,
                COALESCE((s.lasted ->> 'schedule')::interval, '0') AS schedule,
                COALESCE((s.lasted ->> 'queue')::interval, '0') AS queue,
                COALESCE((s.lasted ->> 'refresh')::interval, '0') AS refresh,
                COALESCE((s.lasted ->> 'inherited')::interval, '0') AS inherited,
                COALESCE((s.lasted ->> 'stopped')::interval, '0') AS stopped) AS v
$$;
COMMENT ON FUNCTION pgtrickle_private.lags(timestamptz) IS
    'How far stream tables are behind, divided among the causes, whose sum is the lag; none that shows everything.';

CREATE OR REPLACE FUNCTION pgtrickle.freshness()
    RETURNS TABLE (stream_table text, target interval, p50 interval, p95 interval, p99 interval, status text,
        lag interval, behind_since timestamptz, clock text, waiting_for_watermark interval, at_gate interval,
        before_schedule interval, in_queue interval, in_refresh interval, inherited interval, stopped interval,
        cause text, culprit text, reason text, pgt_id bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
    SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET IntervalStyle = 'postgres'
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH behind AS MATERIALIZED (SELECT l.* FROM lags(clock_timestamp()) AS l)
    SELECT format('%I.%I', t.pgt_schema, t.pgt_name), limits.lag, took.places[1], took.places[2], took.places[3],
        CASE WHEN t.frontier_version = 0 THEN 'unfilled' WHEN b.pgt_id IS NULL THEN 'fresh'
            WHEN b.lag > limits.lag THEN 'late' ELSE 'behind' END,
        COALESCE(b.lag, '0'), b.behind_since, b.clock, COALESCE(b.waiting_for_watermark, '0'),
        COALESCE(b.at_gate, '0'), COALESCE(b.before_schedule, '0'), COALESCE(b.in_queue, '0'),
        COALESCE(b.in_refresh, '0'), COALESCE(b.inherited, '0'), COALESCE(b.stopped, '0'), b.cause, b.culprit,
        COALESCE(b.reason, 'it shows all that its sources have'), t.pgt_id
    FROM pgt_stream_tables AS t LEFT JOIN behind AS b USING (pgt_id)
        CROSS JOIN LATERAL (SELECT table_lag_limit(t.pgt_id) AS lag) AS limits
        CROSS JOIN LATERAL (
            SELECT percentile_disc('{0.5,0.95,0.99}'::float8[]) WITHIN GROUP (ORDER BY h.took) AS places
            FROM (SELECT r.finished_at - r.oldest_change_at AS took FROM pgt_refresh_history AS r
                  WHERE r.pgt_id = t.pgt_id AND r.oldest_change_at IS NOT NULL
                  ORDER BY r.refresh_id DESC LIMIT 100) AS h) AS took
    ORDER BY 1;
END
$$;
COMMENT ON FUNCTION pgtrickle.freshness() IS
    'How far every stream table is behind its sources, and why. lag: the time since the oldest change came that it '
    'does not show; 0 and status fresh where it shows all that its sources have, however long ago they changed. '
    'behind_since: when that change came; clock: how that is known: commit (track_commit_timestamp is on), capture '
    '(when it was captured, before its commit), refresh (nobody knows: no earlier than its data), creation (it was '
    'never filled: unfilled). The lag is the sum of waiting_for_watermark, at_gate (a source gate), before_schedule, '
    'in_queue (due, but not taken up), in_refresh, inherited (a stream table that it reads lacked the change) and '
    'stopped (paused, frozen, drained, failing, or held by its fuse). cause is the longest of them: watermark, gate, '
    'schedule, queue, refresh, inherited or stopped; culprit names the source, schedule, stream table or reason, and '
    'reason says all in one sentence. p50, p95 and p99: in how many of its last 100 refreshes with changes the oldest '
    'change was visible so soon after it came. target: the limit set by set_alert_limits(); behind it is late. '
    'The first six columns have the names of pg_trickle.';
