-- What is wrong now, by events and by the limits of alerts, and telling of it once.

CREATE OR REPLACE FUNCTION pgtrickle_private.limits_passed()
    RETURNS TABLE (kind text, subject text, group_name text, since timestamptz, measured double precision,
        allowed double precision)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    until CONSTANT timestamptz := clock_timestamp();
BEGIN
    RETURN QUERY
    SELECT k.kind, s.source, l.group_name, k.since, k.measured, k.allowed
    FROM watermark_metrics() AS s CROSS JOIN LATERAL alert_limits_of(to_regclass(s.source)) AS l
        LEFT JOIN pgt_source_gates AS g ON g.source_relid = to_regclass(s.source) AND g.ungated_at IS NULL
        CROSS JOIN LATERAL (VALUES
            -- A watermark of the year 9999 plus a long limit may be out of range.
            ('watermark_lag', CASE WHEN s.lag > l.lag THEN s.watermark + l.lag END,
                extract(epoch FROM s.lag)::double precision, extract(epoch FROM l.lag)::double precision,
                isfinite(s.watermark) AND s.idle IS NOT TRUE AND g.source_relid IS NULL),
            -- Of few rows and of few advances a share and a pace say nothing.
            ('late_share', until, s.late_ratio, l.late_share, s.late_rows >= 100 * s.late_ratio),
            ('rate', until, -s.rate, -l.rate, s.advances >= 10 AND isfinite(s.watermark) AND s.idle IS NOT TRUE)
        ) AS k(kind, since, measured, allowed, counts)
    -- One that was dropped has no loader to be late, and no name; its groups say that it is gone.
    WHERE k.counts AND k.measured > k.allowed
        AND EXISTS (SELECT FROM pg_class AS c WHERE c.oid = to_regclass(s.source));
    RETURN QUERY
    SELECT k.kind, g.group_name, g.group_name, until, k.measured, k.allowed
    FROM pgt_watermark_groups AS g
        CROSS JOIN LATERAL (
            SELECT l.* FROM pgt_alert_limits AS l
            WHERE l.group_id = g.group_id OR (l.group_id IS NULL AND l.source_relid IS NULL)
            ORDER BY l.group_id NULLS LAST LIMIT 1) AS l
        CROSS JOIN LATERAL group_alignment(g.group_id) AS a
        CROSS JOIN LATERAL (VALUES
            ('group_lag', extract(epoch FROM (a.lag).span)::double precision,
                extract(epoch FROM l.lag)::double precision),
            ('idle_share', cardinality(a.idle)::double precision / cardinality(a.sources), l.idle_share)
        ) AS k(kind, measured, allowed)
    WHERE k.measured > k.allowed;
    RETURN QUERY
    SELECT 'lag', format('%I.%I', t.pgt_schema, t.pgt_name), NULL::text, b.behind_since + l.lag,
        extract(epoch FROM b.lag)::double precision, extract(epoch FROM l.lag)::double precision
    FROM lags(until) AS b JOIN pgt_stream_tables AS t USING (pgt_id)
        CROSS JOIN LATERAL (SELECT table_lag_limit(t.pgt_id) AS lag) AS l
    -- By the data of a stream table alone nobody knows whether it lacks anything.
    WHERE b.lag > l.lag AND b.clock <> 'refresh';
END
$$;
COMMENT ON FUNCTION pgtrickle_private.limits_passed() IS
    'What passes the limits of alerts now, measured and allowed, in seconds or as a share; a rate is negative.';

CREATE OR REPLACE FUNCTION pgtrickle_private.measured_incidents()
    RETURNS TABLE (kind text, subject text, group_name text, since timestamptz, sentence text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pgt_alert_limits) THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT p.kind, p.subject, p.group_name, p.since, CASE p.kind
        WHEN 'watermark_lag' THEN format('the watermark of %s is %s behind the clock, limit %s', p.subject,
            v.measured, v.allowed)
        WHEN 'group_lag' THEN format('the watermarks of group %s are %s apart, limit %s', p.subject, v.measured,
            v.allowed)
        WHEN 'lag' THEN format('%s is %s behind its sources, limit %s', p.subject, v.measured, v.allowed)
        WHEN 'late_share' THEN format('%s percent of the rows of %s came late, limit %s percent',
            v.percent, p.subject, v.percent_allowed)
        WHEN 'rate' THEN format('the watermark of %s gains %s seconds per second, limit %s', p.subject,
            round(-p.measured::numeric, 3), -p.allowed)
        ELSE format('%s percent of the sources of group %s are idle, limit %s percent', v.percent, p.subject,
            v.percent_allowed) END
    FROM limits_passed() AS p CROSS JOIN LATERAL (
        SELECT CASE WHEN p.kind IN ('lag', 'watermark_lag', 'group_lag')
                THEN written_interval(make_interval(secs => round(p.measured))) END AS measured,
            CASE WHEN p.kind IN ('lag', 'watermark_lag', 'group_lag')
                THEN written_interval(make_interval(secs => p.allowed)) END AS allowed,
            round(100 * p.measured::numeric, 1) AS percent, 100 * p.allowed AS percent_allowed) AS v;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.measured_incidents() IS
    'What passes the limits of alerts now, as incidents; nothing, at no cost, where no limits are set.';

CREATE OR REPLACE FUNCTION pgtrickle_private.present_incidents(measured boolean)
    RETURNS TABLE (kind text, subject text, group_name text, since timestamptz, sentence text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
    SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET IntervalStyle = 'postgres'
AS $$
BEGIN
    RETURN QUERY
    SELECT 'stale', s.source::text, s.group_name, s.seen_at + s.stale_after,
           format('%s is stale: not seen since %s, limit %s', s.source, date_trunc('second', s.seen_at),
               written_interval(s.stale_after))
    FROM stale_sources() AS s
    UNION ALL
    SELECT 'idle', m.source::text, g.group_name, COALESCE(w.marked_idle_at, w.last_seen_at),
           CASE WHEN w.marked_idle_at IS NULL
                THEN format('%s is idle: not seen since %s, its group %s goes on without it', m.source,
                    date_trunc('second', w.last_seen_at), g.group_name)
                ELSE format('%s is idle: marked by %s at %s, its group %s goes on without it',
                            m.source, w.marked_idle_by, date_trunc('second', w.marked_idle_at), g.group_name) END
    FROM pgt_watermark_groups AS g CROSS JOIN LATERAL group_members(g.group_id) AS m
        JOIN pgt_watermarks AS w ON w.source_relid = m.source
    WHERE m.idle
    UNION ALL
    -- It lasts from the first refresh beyond the deadline until the gate opens, however often it refreshes meanwhile.
    SELECT 'gate_deadline', v.name, NULL, COALESCE(a.since, t.gated_since + t.gate_deadline),
        format('%s refreshes although it is gated: %s', v.name, d.reason)
    FROM pgt_stream_tables AS t CROSS JOIN LATERAL (SELECT format('%I.%I', t.pgt_schema, t.pgt_name) AS name) AS v
    LEFT JOIN pgt_alerts AS a ON a.kind = 'gate_deadline' AND a.subject = v.name AND a.closed_at IS NULL
    CROSS JOIN LATERAL gating_decision(t.pgt_id) AS d
    WHERE t.gate_deadline IS NOT NULL AND (a.alert_id IS NOT NULL AND d.decision = 'gated' OR d.deadline_passed)
    UNION ALL
    SELECT 'suspended', v.name, NULL, COALESCE(a.since, clock_timestamp()),
        format('%s is suspended after %s failed refreshes', v.name, t.consecutive_failures)
    FROM pgt_stream_tables AS t CROSS JOIN LATERAL (SELECT format('%I.%I', t.pgt_schema, t.pgt_name) AS name) AS v
    LEFT JOIN pgt_alerts AS a ON a.kind = 'suspended' AND a.subject = v.name AND a.closed_at IS NULL
    WHERE t.status = 'SUSPENDED'
    UNION ALL
    SELECT 'fuse', format('%I.%I', t.pgt_schema, t.pgt_name), NULL, t.fuse_blown_at,
           format('%I.%I is held by its fuse of %s rows', t.pgt_schema, t.pgt_name, t.fuse_ceiling)
    FROM pgt_stream_tables AS t WHERE t.fuse_blown_at > '-infinity'
    UNION ALL
    SELECT i.* FROM measured_incidents() AS i WHERE measured;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.present_incidents(boolean) IS
    'What is wrong now: silent sources, gate deadlines that have passed, suspended stream tables, blown fuses, and, '
    'if it is to be measured, what passes the limits of alerts.';

CREATE OR REPLACE FUNCTION pgtrickle_private.may_be_incidents(ours text[]) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pgt_source_limits)
        OR EXISTS (SELECT FROM pgt_watermark_groups WHERE stale_after IS NOT NULL OR idle_after IS NOT NULL)
        OR EXISTS (SELECT FROM pgt_watermarks WHERE marked_idle_at IS NOT NULL)
        OR EXISTS (SELECT FROM pgt_stream_tables WHERE gate_deadline IS NOT NULL OR status = 'SUSPENDED'
            OR fuse_blown_at > '-infinity')
        OR EXISTS (SELECT FROM pgt_alerts WHERE closed_at IS NULL AND kind = ANY (ours))
        OR ('lag' = ANY (ours) AND EXISTS (SELECT FROM pgt_alert_limits));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.may_be_incidents(text[]) IS
    'Whether there is anything that could be, or have been, an incident of these kinds.';

CREATE OR REPLACE FUNCTION pgtrickle.raise_alerts(measure boolean DEFAULT true) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    ours CONSTANT text[] := ARRAY['stale', 'idle', 'gate_deadline', 'suspended', 'fuse'] || CASE WHEN measure
        THEN ARRAY['lag', 'watermark_lag', 'group_lag', 'late_share', 'rate', 'idle_share'] ELSE '{}' END;
    present jsonb;
BEGIN
    IF NOT may_be_incidents(ours) THEN
        RETURN 0;
    END IF;
    present := (SELECT COALESCE(jsonb_agg(to_jsonb(i)), '[]') FROM present_incidents(measure) AS i);
    RETURN (
        SELECT count(*) FILTER (WHERE told.told) FROM (
            SELECT alert(a.kind, a.subject, false,
                CASE WHEN a.kind IN ('stale', 'idle', 'gate_deadline', 'suspended', 'fuse')
                    THEN format('%s is no longer %s', a.subject, CASE a.kind WHEN 'gate_deadline' THEN 'gated'
                        WHEN 'fuse' THEN 'held by its fuse' ELSE a.kind END)
                    ELSE format('%s is within its limit of %s again', a.subject, replace(a.kind, '_', ' ')) END,
                a.group_name) AS told
            FROM pgt_alerts AS a
            WHERE a.closed_at IS NULL AND a.kind = ANY (ours) AND NOT EXISTS (
                SELECT FROM jsonb_populate_recordset(NULL::pgt_alerts, present) AS i
                WHERE i.kind = a.kind AND i.subject = a.subject AND i.group_name IS NOT DISTINCT FROM a.group_name)
            UNION ALL
            SELECT alert(i.kind, i.subject, true, i.sentence, i.group_name, i.since)
            FROM jsonb_populate_recordset(NULL::pgt_alerts, present) AS i) AS told);
END
$$;
COMMENT ON FUNCTION pgtrickle.raise_alerts(boolean) IS
    'Opens and closes incidents as they stand: silent sources, gate deadlines, suspensions, fuses, and with measure '
    'also what passes the limits of set_alert_limits(); returns how many alerts it sent. Called by every tick, which '
    'measures every ten seconds or more seldom, at next to no cost where there are neither limits nor incidents.';
