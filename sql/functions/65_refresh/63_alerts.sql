-- Alerts: every incident is told once when it begins and once when it ends, on channel pgtrickle_alert.

CREATE OR REPLACE FUNCTION pgtrickle_private.tell_of_silence(incident pgtrickle.pgt_alerts, resolved boolean)
    RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    source CONSTANT regclass := to_regclass(incident.subject);
    seen_at CONSTANT timestamptz := COALESCE(
        (SELECT w.last_seen_at FROM pgt_watermarks AS w WHERE w.source_relid = source), incident.since);
BEGIN
    IF incident.kind = 'stale' THEN
        PERFORM tell_foreign('pg_trickle_alert', (jsonb_build_object(
            'event', CASE WHEN resolved THEN 'watermark_resumed' ELSE 'watermark_stuck' END,
            'database_oid', own_database(), 'source_oid', source::oid::bigint) || CASE WHEN resolved THEN '{}'
            ELSE jsonb_build_object('group', incident.group_name,
                'age_secs', floor(extract(epoch FROM clock_timestamp() - seen_at))::bigint) END)::text);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.tell_of_silence(pgtrickle.pgt_alerts, boolean) IS
    'Tells of a loader that fell silent, or is back, as the extension pg_trickle does, if that form is asked for.';

-- A payload has less than 8000 bytes, and a character up to four.
CREATE OR REPLACE FUNCTION pgtrickle_private.notify_alert(incident pgtrickle.pgt_alerts, resolved boolean,
    sentence text) RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT tell('pgtrickle_alert', jsonb_build_object(
        'kind', left(incident.kind, 100), 'subject', left(incident.subject, 300), 'group',
            left(incident.group_name, 300),
        'since', incident.since, 'sentence', left(sentence, 500), 'resolved', resolved));
    SELECT tell_of_silence(incident, resolved)
$$;
COMMENT ON FUNCTION pgtrickle_private.notify_alert(pgtrickle.pgt_alerts, boolean, text) IS
    'Sends an incident on channel pgtrickle_alert, as the text of a JSON object.';

CREATE OR REPLACE FUNCTION pgtrickle.alert(
        kind text, subject text, open boolean, sentence text, group_name text DEFAULT NULL,
            since timestamptz DEFAULT clock_timestamp()) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    incident pgt_alerts;
BEGIN
    IF kind IS NULL OR subject IS NULL OR open IS NULL OR sentence IS NULL THEN
        PERFORM refuse_value('alert', NULL, 'Give kind, subject, whether it begins or ends, and a sentence.');
    ELSIF open THEN
        INSERT INTO pgt_alerts AS a (kind, subject, group_name, since, sentence)
        VALUES (alert.kind, alert.subject, alert.group_name, COALESCE(alert.since, clock_timestamp()), alert.sentence)
        ON CONFLICT DO NOTHING RETURNING a.* INTO incident;
    ELSE
        UPDATE pgt_alerts AS a SET closed_at = clock_timestamp()
        WHERE a.kind = alert.kind AND a.subject = alert.subject
            AND COALESCE(a.group_name, '') = COALESCE(alert.group_name, '') AND a.closed_at IS NULL
        RETURNING a.* INTO incident;
    END IF;
    IF incident.alert_id IS NULL THEN
        RETURN false;
    END IF;
    PERFORM notify_alert(incident, NOT open, sentence);
    RETURN true;
END
$$;
COMMENT ON FUNCTION pgtrickle.alert(text, text, boolean, text, text, timestamptz) IS
    'Opens or closes the incident of this kind and subject (and group), and tells so on channel pgtrickle_alert; '
    'returns false, and tells nothing, where it is '
    'open or closed already. Everybody may read the sentence: it must not quote data.';

CREATE OR REPLACE FUNCTION pgtrickle_private.present_incidents()
    RETURNS TABLE (kind text, subject text, group_name text, since timestamptz, sentence text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
    SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET IntervalStyle = 'postgres'
AS $$
BEGIN
    RETURN QUERY
    SELECT 'stale', s.source::text, s.group_name, s.seen_at + s.stale_after,
           format('%s is stale: not seen since %s, limit %s', s.source, date_trunc('second', s.seen_at), s.stale_after)
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
    FROM pgt_stream_tables AS t WHERE t.fuse_blown_at > '-infinity';
END
$$;
COMMENT ON FUNCTION pgtrickle_private.present_incidents() IS
    'What is wrong now: silent sources, gate deadlines that have passed, suspended stream tables, blown fuses.';

CREATE OR REPLACE FUNCTION pgtrickle.raise_alerts() RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    ours CONSTANT text[] := ARRAY['stale', 'idle', 'gate_deadline', 'suspended', 'fuse'];
    present jsonb;
BEGIN
    IF NOT (EXISTS (SELECT FROM pgt_source_limits)
            OR EXISTS (SELECT FROM pgt_watermark_groups WHERE stale_after IS NOT NULL OR idle_after IS NOT NULL)
            OR EXISTS (SELECT FROM pgt_watermarks WHERE marked_idle_at IS NOT NULL)
            OR EXISTS (SELECT FROM pgt_stream_tables WHERE gate_deadline IS NOT NULL OR status = 'SUSPENDED'
                OR fuse_blown_at > '-infinity')
            OR EXISTS (SELECT FROM pgt_alerts WHERE closed_at IS NULL AND kind = ANY (ours))) THEN
        RETURN 0;
    END IF;
    present := (SELECT COALESCE(jsonb_agg(to_jsonb(i)), '[]') FROM present_incidents() AS i);
    RETURN (
        SELECT count(*) FILTER (WHERE told.told) FROM (
            SELECT alert(a.kind, a.subject, false,
                format('%s is no longer %s', a.subject, CASE a.kind WHEN 'gate_deadline' THEN 'gated' WHEN 'fuse'
                THEN 'held by its fuse' ELSE a.kind END),
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
COMMENT ON FUNCTION pgtrickle.raise_alerts() IS
    'Opens and closes incidents as they stand: silent sources, gate deadlines, suspensions, fuses; returns how many '
    'alerts it sent. Called once per tick, at next '
    'to no cost where there are none.';
