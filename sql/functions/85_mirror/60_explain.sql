-- A stream table and the graph explained, under the names of pg_trickle.

CREATE OR REPLACE FUNCTION pgtrickle_private.dag_edges() RETURNS TABLE (source bigint, reader bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT DISTINCT u.pgt_id, d.pgt_id
    FROM pgt_dependencies AS d JOIN pgt_stream_tables AS u ON u.pgt_relid = d.source_relid ORDER BY 1, 2
$$;
COMMENT ON FUNCTION pgtrickle_private.dag_edges() IS 'Which stream table reads which other one.';

CREATE OR REPLACE FUNCTION pgtrickle_private.checked_format(format text) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_choice('format', lower(format), 'mermaid', 'dot');
    RETURN lower(format);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.checked_format(text) IS 'A format of drawings, in small letters; error 22023.';

CREATE OR REPLACE FUNCTION pgtrickle.explain_dag(format text DEFAULT 'mermaid') RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
    WITH node AS (
        SELECT i.pgt_id AS id, i.pgt_schema || '.' || i.pgt_name AS name, i.refresh_mode AS mode,
            CASE WHEN i.status = 'SUSPENDED' THEN 'red' WHEN i.fuse_state = 'blown' THEN 'orange' ELSE 'blue'
                END AS colour
        FROM stream_tables_info AS i
    ), line AS (
        SELECT 1 AS part, n.id AS a, 0::bigint AS b, pg_catalog.format('    n%s["%s\n[%s]"]:::%s', n.id,
                replace(n.name, '"', '#quot;'), n.mode, n.colour) AS mermaid,
            pg_catalog.format('    n%s [label="%s\n[%s]", color=%s];', n.id,
                replace(replace(n.name, '\', '\\'), '"', '\"'), n.mode, n.colour) AS dot FROM node AS n
        UNION ALL
        SELECT 2, e.source, e.reader, pg_catalog.format('    n%s --> n%s', e.source, e.reader),
            pg_catalog.format('    n%s -> n%s;', e.source, e.reader) FROM dag_edges() AS e
    )
    SELECT CASE WHEN checked_format(explain_dag.format) = 'dot'
        THEN concat_ws(E'\n', 'digraph dag {', string_agg(l.dot, E'\n' ORDER BY l.part, l.a, l.b), '}')
        ELSE concat_ws(E'\n', 'graph TD', string_agg(l.mermaid, E'\n' ORDER BY l.part, l.a, l.b),
            '    classDef blue fill:#dbeafe,stroke:#2563eb', '    classDef red fill:#fee2e2,stroke:#dc2626',
            '    classDef orange fill:#ffedd5,stroke:#ea580c') END
    FROM line AS l
$$;
COMMENT ON FUNCTION pgtrickle.explain_dag(text) IS
    'The graph of stream tables as text for mermaid or, with dot, for Graphviz: red are suspended ones, orange those '
    'whose fuse has blown.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refresh_timing(p_pgt_id bigint) RETURNS jsonb
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT jsonb_build_object('samples', count(*), 'min_ms', min(h.duration_ms), 'max_ms', max(h.duration_ms),
        'avg_ms', avg(h.duration_ms), 'latest_ms', (array_agg(h.duration_ms ORDER BY h.refresh_id DESC))[1],
        'latest_action', (array_agg(h.action ORDER BY h.refresh_id DESC))[1])
    FROM (SELECT r.refresh_id, r.duration_ms, r.action FROM refresh_history_info AS r
          WHERE r.pgt_id = p_pgt_id AND r.status = 'COMPLETED' ORDER BY r.refresh_id DESC LIMIT 20) AS h
$$;
COMMENT ON FUNCTION pgtrickle_private.refresh_timing(bigint) IS
    'How long the last 20 refreshes of a stream table took.';

CREATE OR REPLACE FUNCTION pgtrickle.explain_st(
        name text, with_analyze boolean DEFAULT false, search_path text DEFAULT current_setting('search_path'))
    RETURNS TABLE (property text, value text)
    LANGUAGE sql STABLE ROWS 20 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH found AS MATERIALIZED (
        SELECT i.* FROM stream_tables_info AS i
        WHERE i.pgt_id = known_stream_table(relation_named(name, search_path), name))
    SELECT p.property, p.value FROM found AS i CROSS JOIN LATERAL (VALUES
        (1, 'pgt_name', i.pgt_schema || '.' || i.pgt_name),
        (2, 'defining_query', i.defining_query),
        (3, 'refresh_mode', i.refresh_mode),
        (4, 'status', i.status),
        (5, 'is_populated', i.is_populated::text),
        (6, 'dvm_supported', (i.full_reason IS NULL)::text),
        (7, 'dvm_error', i.full_reason),
        (8, 'output_columns', (
            SELECT string_agg(a.attname, ', ' ORDER BY a.attnum) FROM pg_attribute AS a
            WHERE a.attrelid = i.pgt_relid AND a.attnum > 0 AND NOT a.attisdropped)),
        (9, 'source_oids', (SELECT string_agg(s.source_oid::text, ', ' ORDER BY s.source_oid)
                            FROM direct_sources() AS s WHERE s.pgt_id = i.pgt_id)),
        (10, 'frontier', i.frontier::text),
        (11, 'refresh_timing_stats', refresh_timing(i.pgt_id)::text),
        (12, 'dependency_graph_dot', explain_dag('dot')),
        (13, 'append_only_mode', i.is_append_only::text),
        (14, 'recommended_refresh_mode', 'AUTO'),
        (15, 'explain_analyze', CASE WHEN with_analyze
            THEN 'nothing is run here: pytrickle explain shows the plan of the next refresh' END),
        (16, 'gating_decision', (SELECT v.decision || ': ' || v.reason FROM verdicts() AS v WHERE v.pgt_id = i.pgt_id)),
        (17, 'effective_watermark', i.effective_watermark::text)
    ) AS p(place, property, value) WHERE p.value IS NOT NULL
    UNION ALL
    SELECT 'error', pg_catalog.format('there is no stream table %L', name) WHERE NOT EXISTS (SELECT FROM found)
$$;
COMMENT ON FUNCTION pgtrickle.explain_st(text, boolean, text) IS
    'What is known of a stream table, one property in each row; of an unknown one a row that says so. pytrickle '
    'explain has the plan of the next refresh.';

CREATE OR REPLACE FUNCTION pgtrickle.explain_json(name text, search_path text DEFAULT current_setting('search_path'))
    RETURNS jsonb
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT jsonb_object_agg(e.property, e.value) FROM pgtrickle.explain_st(name, false, search_path) AS e
$$;
COMMENT ON FUNCTION pgtrickle.explain_json(text, text) IS 'What explain_st() says, as an object.';

CREATE OR REPLACE FUNCTION pgtrickle.explain(name text, search_path text DEFAULT current_setting('search_path'))
    RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT string_agg(e.property || ': ' || e.value, E'\n' ORDER BY e.place)
    FROM pgtrickle.explain_st(name, false, search_path) WITH ORDINALITY AS e(property, value, place)
$$;
COMMENT ON FUNCTION pgtrickle.explain(text, text) IS 'What explain_st() says, as lines of text.';

CREATE OR REPLACE FUNCTION pgtrickle.explain_stream_table(
        name text, search_path text DEFAULT current_setting('search_path')) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT pg_catalog.format('%s is refreshed %s (%s was asked for), %s. It reads %s. Next: %s, %s.%s', i.stream_table,
        i.refresh_mode, i.requested_refresh_mode, v.effective_schedule, (
            SELECT string_agg(s.source_table, ', ' ORDER BY s.source_table) FROM direct_sources() AS s
            WHERE s.pgt_id = i.pgt_id),
        v.decision, v.reason, COALESCE(' Only as a whole: ' || i.full_reason || '.', ''))
    FROM stream_tables_info AS i JOIN verdicts() AS v ON v.pgt_id = i.pgt_id
    WHERE i.pgt_id = stream_table_id(name, search_path)
$$;
COMMENT ON FUNCTION pgtrickle.explain_stream_table(text, text) IS
    'In words: how and when a stream table is refreshed, what it reads, and whether it may be refreshed now.';
