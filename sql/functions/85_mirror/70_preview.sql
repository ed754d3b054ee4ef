-- What would become of a query, under the names of pg_trickle. Nothing stays of the view that is made to find out.

CREATE OR REPLACE FUNCTION pgtrickle_private.previewed(query text, search_path text) RETURNS jsonb
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    found jsonb;
    view regclass;
    refusal text;
BEGIN
    IF query IS NULL THEN
        PERFORM refuse_value('query', NULL, 'Give a SELECT statement.');
    END IF;
    BEGIN
        view := create_query_view(0, query, search_path);
        found := jsonb_build_object('sources', (
                SELECT COALESCE(jsonb_agg(n.name ORDER BY n.name), '[]')
                FROM query_sources(view) AS s CROSS JOIN LATERAL qualified_name(s.source_relid) AS n(name)),
            'tree', (SELECT string_agg(t.tree, ' ') FROM query_trees(view) AS t),
            'volatility', (
                SELECT max(p.provolatile::text) FROM query_functions(view) AS f JOIN pg_proc AS p ON p.oid = f),
            'full_reason', full_reason(view));
        PERFORM check_query(view);
        RAISE EXCEPTION USING ERRCODE = 'P0001', CONSTRAINT = 'previewed';
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS refusal = CONSTRAINT_NAME;
        IF refusal <> 'previewed' THEN
            found := COALESCE(found, '{}') || jsonb_build_object('refused', SQLERRM, 'parsed', found IS NOT NULL);
        END IF;
    END;
    RETURN found;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.previewed(text, text) IS
    'What PostgreSQL makes of a defining query: its sources, why it could only be refreshed as a whole, why it would '
    'be refused.';

CREATE OR REPLACE FUNCTION pgtrickle.preview_stream_table(
        query text, schedule text DEFAULT 'calculated', refresh_mode text DEFAULT 'AUTO',
        target_freshness text DEFAULT NULL, search_path text DEFAULT current_setting('search_path'))
    RETURNS TABLE (property text, value text)
    LANGUAGE plpgsql VOLATILE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    found CONSTANT jsonb := previewed(query, search_path);
    only_whole CONSTANT boolean := found ->> 'full_reason' IS NOT NULL;
BEGIN
    PERFORM chosen_options(
        jsonb_populate_record(NULL::pgt_stream_tables, option_defaults() || '{"output_mode": "update"}'),
        jsonb_build_object('schedule', schedule, 'refresh_mode', refresh_mode, 'target_freshness', target_freshness));
    RETURN QUERY SELECT p.name, p.text FROM (VALUES
        ('dvm_supported', (NOT (only_whole OR found ? 'refused'))::text),
        ('refresh_strategy', CASE WHEN found ? 'refused' THEN NULL
            WHEN only_whole OR upper(refresh_mode) = 'FULL' THEN 'FULL' ELSE 'DIFFERENTIAL' END),
        (CASE WHEN (found ->> 'parsed')::boolean THEN 'dvm_rejection_reason' ELSE 'parse_error' END,
            found ->> 'refused'),
        ('dvm_rejection_reason', CASE WHEN NOT found ? 'refused' THEN found ->> 'full_reason' END),
        ('source_tables', (SELECT string_agg(s, ', ') FROM jsonb_array_elements_text(found -> 'sources') AS s)),
        ('recursive_cte', (found ->> 'tree' LIKE '%:hasRecursive true%')::text)
    ) AS p(name, text) WHERE p.text IS NOT NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle.preview_stream_table(text, text, text, text, text) IS
    'What would become of a stream table; nothing is created. refresh_strategy is what the database knows: pytrickle '
    'explain says of a stream table what the planner makes of it.';

CREATE OR REPLACE FUNCTION pgtrickle.validate_query(
        query text, search_path text DEFAULT current_setting('search_path'))
    RETURNS TABLE (check_name text, result text, severity text)
    LANGUAGE plpgsql VOLATILE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    found CONSTANT jsonb := previewed(query, search_path);
    tree CONSTANT text := COALESCE(found ->> 'tree', '');
BEGIN
    RETURN QUERY SELECT c.name, c.text, c.level FROM (VALUES
        ('resolved_refresh_mode', CASE WHEN found ? 'refused' THEN NULL
            WHEN found ->> 'full_reason' IS NULL THEN 'DIFFERENTIAL' ELSE 'FULL' END, 'INFO'),
        (CASE WHEN (found ->> 'parsed')::boolean THEN 'unsupported_construct' ELSE 'dvm_parse_error' END,
            found ->> 'refused', 'ERROR'),
        ('ivm_support_check', CASE WHEN NOT found ? 'refused' THEN found ->> 'full_reason' END, 'WARNING'),
        ('join', CASE WHEN tree LIKE '%{JOINEXPR %' THEN 'used' END, 'INFO'),
        ('aggregate', CASE WHEN tree LIKE '%:hasAggs true%' THEN 'used' END, 'INFO'),
        ('set_op', CASE WHEN tree LIKE '%{SETOPERATIONSTMT %' THEN 'used' END, 'INFO'),
        ('window_function', CASE WHEN tree LIKE '%:hasWindowFuncs true%' THEN 'used' END, 'INFO'),
        ('scalar_subquery', CASE WHEN tree LIKE '%:subLinkType 4 %' THEN 'used' END, 'INFO'),
        ('lateral', CASE WHEN tree LIKE '%:lateral true%' THEN 'used' END, 'INFO'),
        ('recursive_cte', CASE WHEN tree LIKE '%:hasRecursive true%' THEN 'used' END, 'INFO'),
        ('volatility', CASE found ->> 'volatility' WHEN 'v' THEN 'volatile' WHEN 's' THEN 'stable'
            ELSE 'immutable' END, CASE found ->> 'volatility' WHEN 'v' THEN 'ERROR' ELSE 'INFO' END)
    ) AS c(name, text, level) WHERE c.text IS NOT NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle.validate_query(text, text) IS
    'What a defining query uses, and whether it can become a stream table; nothing is created.';
