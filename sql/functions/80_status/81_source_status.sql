-- Introspection of source gates and alerts, for everybody, as in the status functions.

CREATE OR REPLACE FUNCTION pgtrickle.source_gates()
    RETURNS TABLE (source_table text, schema_name text, gated boolean, gated_at timestamptz, ungated_at timestamptz,
        gated_by text, source text, reason text, stream_tables text[])
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT n.table_name, n.schema_name, g.gated, g.gated_at, g.ungated_at, g.gated_by, n.qualified, g.reason, ARRAY(
        SELECT format('%I.%I', t.pgt_schema, t.pgt_name) FROM pgt_stream_tables AS t
        WHERE g.gated AND g.source_relid IN (SELECT b.source FROM base_sources(t.pgt_id) AS b) ORDER BY 1)
    FROM pgt_source_gates AS g CROSS JOIN LATERAL parts_of_name(g.source_relid) AS n ORDER BY n.qualified
$$;
COMMENT ON FUNCTION pgtrickle.source_gates() IS
    'The sources that are under a gate (gated) or were: since when, by whom and why, when it was opened, and the '
    'stream tables that wait for it.';

CREATE OR REPLACE FUNCTION pgtrickle.bootstrap_gate_status()
    RETURNS TABLE (source_table text, schema_name text, gated boolean, gated_at timestamptz, ungated_at timestamptz,
        gated_by text, gate_duration interval, affected_stream_tables text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT n.table_name, n.schema_name, g.gated, g.gated_at, g.ungated_at, g.gated_by,
        COALESCE(g.ungated_at, clock_timestamp()) - g.gated_at, (
            SELECT string_agg(t.pgt_schema || '.' || t.pgt_name, ', ' ORDER BY t.pgt_schema, t.pgt_name)
            FROM pgt_dependencies AS d JOIN pgt_stream_tables AS t USING (pgt_id)
            WHERE d.source_relid = g.source_relid)
    FROM pgt_source_gates AS g CROSS JOIN LATERAL parts_of_name(g.source_relid) AS n
    ORDER BY g.gated DESC, n.schema_name, n.table_name
$$;
COMMENT ON FUNCTION pgtrickle.bootstrap_gate_status() IS
    'The sources that are or were under a gate, for how long, and the stream tables that read them directly. '
    'bootstrap_status() has how far the filling of a new warehouse is.';

CREATE OR REPLACE FUNCTION pgtrickle.bootstrap_status()
    RETURNS TABLE (source text, gated boolean, gated_at timestamptz, gated_by text, ungated_at timestamptz,
        watermark timestamptz, last_seen_at timestamptz,
                   stream_table text, filled boolean, decision text, waits_for text, batch bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH tables AS MATERIALIZED (
        SELECT t.pgt_id, format('%I.%I', t.pgt_schema, t.pgt_name) AS name, t.frontier_version > 0 AS filled,
            d.decision, d.reason
        FROM pgt_stream_tables AS t CROSS JOIN LATERAL gating_decision(t.pgt_id) AS d
    ), reads AS MATERIALIZED (
        SELECT b.source, t.name, t.filled, t.decision,
               CASE WHEN t.decision <> 'run' THEN t.reason
                    WHEN t.filled THEN NULL
                    ELSE COALESCE((SELECT u.name || ' to be filled' FROM upstream_tables(t.pgt_id) AS up
                        JOIN tables AS u USING (pgt_id)
                                   WHERE u.pgt_id <> t.pgt_id AND NOT u.filled ORDER BY u.pgt_id LIMIT 1),
                                       'the next tick') END AS waits_for
        FROM tables AS t CROSS JOIN LATERAL base_sources(t.pgt_id) AS b(source)
    ), sources AS (
        SELECT source FROM reads UNION SELECT source_relid FROM pgt_source_gates UNION SELECT source_relid
            FROM pgt_watermarks
        UNION SELECT unnest(sources) FROM pgt_watermark_groups
    )
    SELECT qualified_name(s.source), COALESCE(g.ungated_at IS NULL AND g.source_relid IS NOT NULL, false), g.gated_at,
        g.gated_by, g.ungated_at,
           w.watermark, w.last_seen_at, r.name, r.filled, r.decision, r.waits_for, w.batch
    FROM sources AS s LEFT JOIN pgt_source_gates AS g ON g.source_relid = s.source
        LEFT JOIN pgt_watermarks AS w ON w.source_relid = s.source
    LEFT JOIN reads AS r ON r.source = s.source
    ORDER BY 1, 8
$$;
COMMENT ON FUNCTION pgtrickle.bootstrap_status() IS
    'How far the filling of a new warehouse is: one row per source and stream table made of it, and one for each '
    'source that none reads yet. The source: '
    'whether it is or was gated, its watermark or batch (both NULL: it never advanced); the stream table: whether it '
    'was filled, and what it waits for.';

CREATE OR REPLACE FUNCTION pgtrickle.alerts(max_rows integer DEFAULT 20)
    RETURNS TABLE (kind text, subject text, group_name text, since timestamptz, sentence text, opened_at timestamptz,
        closed_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT a.kind, a.subject, a.group_name, a.since, a.sentence, a.opened_at, a.closed_at
    FROM pgt_alerts AS a ORDER BY a.closed_at IS NOT NULL, a.alert_id DESC LIMIT row_limit(max_rows)
$$;
COMMENT ON FUNCTION pgtrickle.alerts(integer) IS 'Incidents: the open ones, then those that ended, newest first.';
