-- What a change of a direct input waits for: each cause with the time during which it held the change.

CREATE OR REPLACE FUNCTION pgtrickle_private.stopped_since(
        t pgtrickle.pgt_stream_tables, OUT since timestamptz, OUT culprit text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    lost CONSTANT text := lasting_problem(t);
BEGIN
    culprit := CASE
        WHEN lost IS NOT NULL THEN lost
        WHEN t.paused THEN 'it is paused'
        WHEN t.tier = 'frozen' THEN 'its tier is frozen'
        WHEN NOT is_running(t) THEN 'all refreshing is drained'
        WHEN t.fuse_blown_at > '-infinity' THEN format('its fuse of %s rows holds a delta', t.fuse_ceiling)
        WHEN t.status = 'SUSPENDED' THEN format('it is suspended after %s failed refreshes', t.consecutive_failures)
        WHEN t.last_error IS NOT NULL THEN 'its last refresh failed' END;
    -- Nobody writes down when it was paused, frozen or drained.
    since := CASE
        WHEN culprit IS NULL THEN NULL
        WHEN lost IS NOT NULL OR NOT is_running(t) THEN '-infinity'
        WHEN t.fuse_blown_at > '-infinity' THEN t.fuse_blown_at
        ELSE COALESCE((
            SELECT min(h.started_at) FROM pgt_refresh_history AS h
            WHERE h.pgt_id = t.pgt_id AND h.status = 'FAILED'
                AND h.started_at >= COALESCE(t.last_refresh_at, '-infinity')), t.last_error_at, '-infinity') END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.stopped_since(pgtrickle.pgt_stream_tables) IS
    'Since when ticks do not refresh a stream table at all, or its refreshes fail, and why; -infinity where nobody '
    'wrote down since when, NULL where neither is so.';

CREATE OR REPLACE FUNCTION pgtrickle_private.gated_during(
        p_pgt_id bigint, OUT during tstzmultirange, OUT culprit text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    SELECT COALESCE(range_agg(tstzrange(g.gated_at, greatest(g.gated_at, COALESCE(g.ungated_at, 'infinity')))), '{}'),
        string_agg(qualified_name(g.source_relid), ', ' ORDER BY g.source_name) INTO during, culprit
    FROM pgt_source_gates AS g WHERE g.source_relid IN (SELECT b.source FROM base_sources(p_pgt_id) AS b);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.gated_during(bigint) IS
    'While when the sources that a stream table is made of were last, or are, under a source gate, and which.';

CREATE OR REPLACE FUNCTION pgtrickle_private.holding_source(p_pgt_id bigint, p_source regclass, xid xid8, pos bigint)
    RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN COALESCE((
        SELECT qualified_name(a.slowest)
        FROM gating_groups(p_pgt_id) AS g CROSS JOIN LATERAL group_alignment(g.group_id) AS a
        -- Where its own loader has not covered the change yet, nobody else matters.
        WHERE p_source = ANY (a.sources) AND EXISTS (
            SELECT FROM latest_entry(p_source, unbounded()) AS e WHERE covers(e.cut, xid, pos))
        ORDER BY a.low LIMIT 1), qualified_name(p_source));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.holding_source(bigint, regclass, xid8, bigint) IS
    'The source whose watermark a change waits for that is beyond the cut of a stream table that holds back.';

CREATE OR REPLACE FUNCTION pgtrickle_private.held_by_watermark(
        t pgtrickle.pgt_stream_tables, p_source regclass, xid xid8, pos bigint, gate_shut boolean,
        OUT during tstzmultirange, OUT culprit text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    verdict CONSTANT record := gating_decision(t.pgt_id);
    cap CONSTANT jsonb := verdict.caps -> p_source::oid::text;
    last record;
BEGIN
    during := '{}';
    SELECT w.advanced_at, qualified_name(w.source_relid) AS name INTO last
    FROM gating_groups(t.pgt_id) AS c JOIN pgt_watermark_groups AS g USING (group_id)
        JOIN pgt_watermarks AS w ON w.source_relid = ANY (g.sources)
    ORDER BY w.advanced_at DESC LIMIT 1;
    IF verdict.decision <> 'run' THEN
        IF NOT gate_shut THEN
            -- Since the last advance nothing has changed about what the watermarks say.
            during := tstzmultirange(
                tstzrange(COALESCE(least(t.gated_since, last.advanced_at), '-infinity'), 'infinity'));
            culprit := COALESCE(verdict.waiting_for, verdict.reason);
        END IF;
    ELSIF xid IS NOT NULL AND cap IS NOT NULL AND NOT covers(jsonb_populate_record(NULL::cut, cap), xid, pos) THEN
        during := tstzmultirange(tstzrange('-infinity', 'infinity'));
        culprit := holding_source(t.pgt_id, p_source, xid, pos);
    ELSIF last.advanced_at > t.gated_since THEN
        during := tstzmultirange(tstzrange(t.gated_since, last.advanced_at));
        culprit := last.name;
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.held_by_watermark(pgtrickle.pgt_stream_tables, regclass, xid8, bigint, boolean) IS
    'While when a change of a source waited, or waits, for the watermark of a source, and of which.';

CREATE OR REPLACE FUNCTION pgtrickle_private.due_at(t pgtrickle.pgt_stream_tables) RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN CASE
        WHEN t.frontier_version = 0 OR t.last_refresh_at IS NULL THEN '-infinity'
        WHEN t.schedule = 'calculated' AND t.tier = 'hot' THEN '-infinity'
        WHEN t.tier = 'frozen' THEN 'infinity'
        WHEN cron_expression(t.schedule) IS NOT NULL THEN
            CASE WHEN t.last_refresh_at >= t.next_due_at THEN 'infinity' ELSE COALESCE(t.next_due_at, 'infinity') END
        WHEN t.schedule <> 'calculated' AND t.schedule::interval > interval '1000 years' THEN 'infinity'
        ELSE t.last_refresh_at + tier_factor(t.tier)
            * CASE t.schedule WHEN 'calculated' THEN interval '1 second' ELSE t.schedule::interval END END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.due_at(pgtrickle.pgt_stream_tables) IS
    'From when on its schedule lets ticks refresh a stream table; infinity where the moment is not worked out yet.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refreshes_under_way()
    RETURNS TABLE (pgt_id bigint, since timestamptz)
    LANGUAGE sql STABLE ROWS 5 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    -- Anybody may give a session any name, so one counts only if a role that may refresh has it.
    SELECT m[1]::bigint, to_timestamp(m[2]::bigint / 1000.0)
    FROM pg_stat_activity AS a
        CROSS JOIN LATERAL regexp_match(a.application_name, '^pytrickle/refresh ([0-9]{1,18}) ([0-9]{1,15})$') AS m
    WHERE a.datname = current_database() AND pg_has_role(a.usesysid, catalog_owner(), 'USAGE') AND m IS NOT NULL
$$;
COMMENT ON FUNCTION pgtrickle_private.refreshes_under_way() IS
    'The stream tables that are being refreshed now, and since when, but for refreshes of few changes, which take '
    'milliseconds.';
