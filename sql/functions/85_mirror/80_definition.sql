-- The call that makes a stream table anew, under the names of pg_trickle.

CREATE OR REPLACE FUNCTION pgtrickle_private.dollar_quoted(value text) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE WHEN strpos(value, '$pgt') > 0 OR value LIKE '%$' THEN quote_literal(value)
        ELSE '$pgt$' || value || '$pgt$' END
$$;
COMMENT ON FUNCTION pgtrickle_private.dollar_quoted(text) IS 'A text as a literal that stays readable.';

CREATE OR REPLACE FUNCTION pgtrickle_private.settings_to_write(t pgtrickle.pgt_stream_tables)
    RETURNS TABLE (place integer, argument text, value text, literal text)
    LANGUAGE sql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT s.place, s.argument, s.value, CASE WHEN s.quoted THEN quote_literal(s.value) ELSE s.value END
    FROM (VALUES
        (1, 'schedule', true, NULLIF((t).schedule, 'calculated')),
        (2, 'refresh_mode', true, (t).refresh_mode),
        (3, 'diamond_consistency', true, NULLIF((t).diamond_consistency, 'atomic')),
        (4, 'diamond_schedule_policy', true, NULLIF((t).diamond_schedule_policy, 'fastest')),
        (5, 'cdc_mode', true, (t).requested_cdc_mode),
        (6, 'append_only', false, NULLIF((t).is_append_only, false)::text),
        (7, 'pooler_compatibility_mode', false, NULLIF((t).pooler_compatibility_mode, false)::text),
        (8, 'partition_by', true, (t).st_partition_key),
        (9, 'max_differential_joins', false, (t).max_differential_joins::text),
        (10, 'max_delta_fraction', false, (t).max_delta_fraction::text),
        (11, 'fillfactor', false, (t).storage_fillfactor::text),
        (12, 'target_freshness', true, CASE (t).target_freshness_mode WHEN 'INTERVAL'
            THEN (t).freshness_deadline_ms || ' ms' ELSE (t).target_freshness_mode END),
        (13, 'orchestration_mode', true, NULLIF((t).orchestration_mode, 'MANAGED')),
        (14, 'watermark_gating', true, NULLIF((t).watermark_gating, 'auto')),
        (15, 'require_watermark', false, NULLIF((t).require_watermark, false)::text),
        (16, 'tier', true, NULLIF((t).tier, 'hot')),
        (17, 'schedule_timezone', true, CASE WHEN cron_expression((t).schedule) IS NOT NULL
            THEN (t).schedule_timezone END),
        (18, 'watermark_tolerance', true, (t).watermark_tolerance::text),
        (19, 'gate_deadline', true, (t).gate_deadline::text),
        (20, 'fuse_ceiling', false, (t).fuse_ceiling::text),
        (21, 'allow_circular', false, NULLIF((t).allow_circular, false)::text),
        (22, 'max_fixpoint_iterations', false, NULLIF((t).max_fixpoint_iterations, 100)::text),
        (23, 'batch_tolerance', false, (t).batch_tolerance::text),
        (24, 'watermark_retention', true, (t).watermark_retention::text),
        (25, 'output_mode', true, NULLIF((t).output_mode, 'update')),
        (26, 'window_end', true, CASE WHEN (t).output_mode = 'append' OR (t).frozen_after IS NOT NULL
            THEN (t).window_end END),
        (27, 'statement_timeout', true, (t).statement_timeout::text),
        (28, 'engine', true, NULLIF((t).engine, 'auto')),
        (29, 'frozen_after', true, (t).frozen_after::text),
        (30, 'close_after_idle', true, (t).close_after_idle::text),
        (31, 'search_path', true, (t).defining_search_path)
    ) AS s(place, argument, quoted, value) WHERE s.value IS NOT NULL
$$;
COMMENT ON FUNCTION pgtrickle_private.settings_to_write(pgtrickle.pgt_stream_tables) IS
    'The options of a stream table that are not what they are by default, each also as a literal.';

CREATE OR REPLACE FUNCTION pgtrickle_private.definition_text(p_pgt_id bigint) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET IntervalStyle = 'postgres'
        SET standard_conforming_strings = on
AS $$
    SELECT format(E'-- DROP STREAM TABLE IF EXISTS %s;\n'
        'SELECT pgtrickle.create_stream_table(\n    %L::text,\n    %s::text,\n%s\n);', n.name,
        n.name, dollar_quoted(t.defining_query), (
            SELECT string_agg(format('    %s => %s', s.argument, s.literal), E',\n' ORDER BY s.place)
            FROM settings_to_write(t) AS s))
    FROM pgt_stream_tables AS t CROSS JOIN LATERAL (SELECT format('%I.%I', t.pgt_schema, t.pgt_name) AS name) AS n
    WHERE t.pgt_id = p_pgt_id
$$;
COMMENT ON FUNCTION pgtrickle_private.definition_text(bigint) IS 'The call that makes a stream table anew.';

CREATE OR REPLACE FUNCTION pgtrickle.export_definition(
        st_name text, search_path text DEFAULT current_setting('search_path')) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT definition_text(stream_table_id(st_name, search_path))
$$;
COMMENT ON FUNCTION pgtrickle.export_definition(text, text) IS
    'The call that makes a stream table anew, below a comment that names it.';

CREATE OR REPLACE FUNCTION pgtrickle.stream_table_definition(
        p_name text, search_path text DEFAULT current_setting('search_path')) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT definition_text(stream_table_id(p_name, search_path))
$$;
COMMENT ON FUNCTION pgtrickle.stream_table_definition(text, text) IS 'The same as export_definition().';

CREATE OR REPLACE FUNCTION pgtrickle_private.definition_json(p_pgt_id bigint) RETURNS jsonb
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET IntervalStyle = 'postgres'
AS $$
    SELECT jsonb_build_object('schema', t.pgt_schema, 'name', t.pgt_name, 'query', t.defining_query, 'options', (
        SELECT COALESCE(jsonb_object_agg(s.argument, s.value), '{}')
        FROM settings_to_write(t) AS s))
    FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id
$$;
COMMENT ON FUNCTION pgtrickle_private.definition_json(bigint) IS 'What makes a stream table anew, as an object.';

CREATE OR REPLACE FUNCTION pgtrickle.stream_table_spec(
        qualified_name text, search_path text DEFAULT current_setting('search_path')) RETURNS jsonb
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT definition_json(known_stream_table(relation_named(qualified_name, search_path), qualified_name))
$$;
COMMENT ON FUNCTION pgtrickle.stream_table_spec(text, text) IS
    'The query and the options of a stream table as an object; NULL where there is none of that name.';

CREATE OR REPLACE FUNCTION pgtrickle.stream_table_spec(relid oid) RETURNS jsonb
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT definition_json(i.pgt_id) FROM stream_tables_info AS i WHERE i.pgt_relid = relid
$$;
COMMENT ON FUNCTION pgtrickle.stream_table_spec(oid) IS 'The same for the number of the table.';
