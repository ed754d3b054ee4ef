-- The call that makes a stream table anew, under the names of pg_trickle.

CREATE OR REPLACE FUNCTION pgtrickle_private.dollar_quoted(value text) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE WHEN strpos(value, '$pgt') > 0 OR value LIKE '%$' THEN quote_literal(value)
        ELSE '$pgt$' || value || '$pgt$' END
$$;
COMMENT ON FUNCTION pgtrickle_private.dollar_quoted(text) IS 'A text as a literal that stays readable.';

CREATE OR REPLACE FUNCTION pgtrickle_private.settings_to_write(t pgtrickle.pgt_stream_tables)
    RETURNS TABLE (place integer, argument text, value text)
    LANGUAGE sql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT s.* FROM (VALUES
        (1, 'schedule', quote_literal(NULLIF((t).schedule, 'calculated'))),
        (2, 'refresh_mode', quote_literal((t).refresh_mode)),
        (3, 'diamond_consistency', quote_literal(NULLIF((t).diamond_consistency, 'atomic'))),
        (4, 'diamond_schedule_policy', quote_literal(NULLIF((t).diamond_schedule_policy, 'fastest'))),
        (5, 'cdc_mode', quote_literal((t).requested_cdc_mode)),
        (6, 'append_only', NULLIF((t).is_append_only, false)::text),
        (7, 'pooler_compatibility_mode', NULLIF((t).pooler_compatibility_mode, false)::text),
        (8, 'partition_by', quote_literal((t).st_partition_key)),
        (9, 'max_differential_joins', (t).max_differential_joins::text),
        (10, 'max_delta_fraction', (t).max_delta_fraction::text),
        (11, 'watermark_gating', quote_literal(NULLIF((t).watermark_gating, 'auto'))),
        (12, 'require_watermark', NULLIF((t).require_watermark, false)::text),
        (13, 'tier', quote_literal(NULLIF((t).tier, 'hot'))),
        (14, 'schedule_timezone', CASE WHEN cron_expression((t).schedule) IS NOT NULL
            THEN quote_literal((t).schedule_timezone) END),
        (15, 'watermark_tolerance', quote_literal((t).watermark_tolerance::text)),
        (16, 'gate_deadline', quote_literal((t).gate_deadline::text)),
        (17, 'fuse_ceiling', (t).fuse_ceiling::text),
        (18, 'allow_circular', NULLIF((t).allow_circular, false)::text),
        (19, 'max_fixpoint_iterations', NULLIF((t).max_fixpoint_iterations, 100)::text),
        (20, 'batch_tolerance', (t).batch_tolerance::text),
        (21, 'watermark_retention', quote_literal((t).watermark_retention::text)),
        (22, 'output_mode', quote_literal(NULLIF((t).output_mode, 'update'))),
        (23, 'window_end', quote_literal((t).window_end)),
        (24, 'statement_timeout', quote_literal((t).statement_timeout::text)),
        (25, 'search_path', quote_literal((t).defining_search_path))
    ) AS s(place, argument, value) WHERE s.value IS NOT NULL
$$;
COMMENT ON FUNCTION pgtrickle_private.settings_to_write(pgtrickle.pgt_stream_tables) IS
    'The options of a stream table that are not what they are by default, each as a literal.';

CREATE OR REPLACE FUNCTION pgtrickle_private.definition_text(p_pgt_id integer) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET IntervalStyle = 'postgres'
AS $$
    SELECT format(E'-- DROP STREAM TABLE IF EXISTS %s;\n'
        'SELECT pgtrickle.create_stream_table(\n    %L::text,\n    %s::text,\n%s\n);', n.name,
        n.name, dollar_quoted(t.defining_query), (
            SELECT string_agg(format('    %s => %s', s.argument, s.value), E',\n' ORDER BY s.place)
            FROM settings_to_write(t) AS s))
    FROM pgt_stream_tables AS t CROSS JOIN LATERAL (SELECT format('%I.%I', t.pgt_schema, t.pgt_name) AS name) AS n
    WHERE t.pgt_id = p_pgt_id
$$;
COMMENT ON FUNCTION pgtrickle_private.definition_text(integer) IS 'The call that makes a stream table anew.';

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
