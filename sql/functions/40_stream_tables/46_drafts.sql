-- What would become of a query, before anything is created. Sources are only read: nothing waits for who writes them.

-- The hidden view stands in for the table that would hold the rows: it has the same columns.
CREATE OR REPLACE FUNCTION pgtrickle_private.draft_stream_table(query text, search_path text) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT bigint := nextval(pg_get_serial_sequence('pgtrickle.pgt_stream_tables', 'pgt_id'));
    path CONSTANT text := resolved_search_path(search_path);
    view regclass;
BEGIN
    IF query IS NULL THEN
        PERFORM refuse_value('query', NULL, 'Give a SELECT statement.');
    END IF;
    view := create_query_view(id, query, search_path);
    PERFORM check_query(view);
    INSERT INTO pgt_stream_tables (
        pgt_id, pgt_relid, pgt_schema, pgt_name, defining_query, view_relid, session_settings, full_reason,
        time_dependent, system_identifier)
    OVERRIDING SYSTEM VALUE
    VALUES (id, view, 'pgtrickle_state', 'query_' || id, query, view,
            session_settings(view) || jsonb_build_object('search_path', path), full_reason(view),
            time_dependence(view) IS NOT NULL, (SELECT system_identifier FROM pg_control_system()));
    INSERT INTO pgt_dependencies (pgt_id, source_relid, source_name, source_type, columns_used)
    SELECT id, s.source_relid, qualified_name(s.source_relid), s.source_type, s.columns_used
    FROM query_sources(view) AS s;
    PERFORM wrap_functions(view, path);
    RETURN id;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.draft_stream_table(text, text) IS
    'Writes a stream table that reads the query, without storage and without capture, into a transaction that is to be '
    'rolled back; returns its number. Errors as create_stream_table() has them.';

-- As if one row of the source had changed; its values tell the planner more than none.
CREATE OR REPLACE FUNCTION pgtrickle_private.draft_buffers(p_pgt_id bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET client_min_messages = warning
AS $$
DECLARE
    source record;
    columns text;
    buffer text;
BEGIN
    FOR source IN
        SELECT d.source_relid AS relid, d.columns_used FROM pgt_dependencies AS d
        WHERE d.pgt_id = p_pgt_id AND d.source_type <> 'UNCAPTURED'
    LOOP
        buffer := format('pg_temp.changes_%s', source.relid::oid);
        SELECT string_agg(', ' || column_definition(source.relid, c), '') INTO columns
        FROM unnest(source.columns_used) AS c;
        EXECUTE format(
            'CREATE TEMPORARY TABLE %s (pgt_weight smallint, pgt_xid xid8, pgt_pos bigint, pgt_lsn pg_lsn%s)', buffer,
            columns);
        EXECUTE format('CREATE INDEX ON %s (pgt_xid)', buffer);
        EXECUTE format('INSERT INTO %s SELECT 1, pg_current_xact_id(), 0, NULL%s FROM %s LIMIT 1', buffer,
            (SELECT string_agg(format(', %I', c), '') FROM unnest(source.columns_used) AS c), source.relid);
        EXECUTE format('ANALYZE %s', buffer);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.draft_buffers(bigint) IS
    'Creates temporary tables that stand in for the change buffers of a draft, with a change in each where its source '
    'has a row, so that PostgreSQL can be asked what a refresh would cost.';

CREATE OR REPLACE FUNCTION pgtrickle_private.expected(view regclass, OUT row_count bigint, OUT cost numeric)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    answer json;
BEGIN
    EXECUTE format('EXPLAIN (FORMAT JSON) SELECT * FROM %s', view) INTO answer;
    row_count := answer #>> '{0,Plan,Plan Rows}';
    cost := answer #>> '{0,Plan,Total Cost}';
END
$$;
COMMENT ON FUNCTION pgtrickle_private.expected(regclass) IS
    'How many rows PostgreSQL''s planner expects of a view, and at what cost in its own units.';

CREATE OR REPLACE FUNCTION pgtrickle_private.facts_of(view regclass) RETURNS TABLE (property text, value text)
    LANGUAGE plpgsql VOLATILE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    reason CONSTANT text := full_reason(view);
    counted CONSTANT record := expected(view);
BEGIN
    RETURN QUERY
        SELECT 'differential', CASE WHEN reason IS NULL THEN 'yes, as far as the database knows'
            ELSE 'no: ' || reason END
        UNION ALL SELECT 'expected rows', counted.row_count::text
        UNION ALL SELECT 'expected cost of the first load', counted.cost::text
        UNION ALL
        (SELECT 'source', n.name || CASE
            WHEN s.obstacle IS NOT NULL THEN ' is read as a whole'
            WHEN t.source_relid IS NOT NULL THEN ' is captured already'
            ELSE ' would be captured' END
        FROM query_sources(view) AS s LEFT JOIN pgt_change_tracking AS t USING (source_relid)
            CROSS JOIN LATERAL qualified_name(s.source_relid) AS n(name)
        ORDER BY n.name)
        UNION ALL SELECT 'delta plan, engines, missing indexes', 'pytrickle explain --query';
END
$$;
COMMENT ON FUNCTION pgtrickle_private.facts_of(regclass) IS
    'What the database knows of the query of a hidden view, as pairs of names and values.';

CREATE OR REPLACE FUNCTION pgtrickle.preview(query text, search_path text DEFAULT current_setting('search_path'))
    RETURNS TABLE (property text, value text)
    LANGUAGE plpgsql VOLATILE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    told text[];
    view regclass;
    refusal text;
BEGIN
    IF query IS NULL THEN
        PERFORM refuse_value('query', NULL, 'Give a SELECT statement.');
    END IF;
    BEGIN
        view := create_query_view(nextval(pg_get_serial_sequence('pgtrickle.pgt_stream_tables', 'pgt_id')), query,
            search_path);
        PERFORM check_query(view);
        told := ARRAY(SELECT ARRAY[f.property, f.value] FROM facts_of(view) AS f);
        RAISE EXCEPTION USING ERRCODE = 'P0001', CONSTRAINT = 'previewed';
    EXCEPTION WHEN raise_exception THEN
        GET STACKED DIAGNOSTICS refusal = CONSTRAINT_NAME;
        IF refusal <> 'previewed' THEN
            RAISE;
        END IF;
    END;
    RETURN QUERY SELECT told[i][1], told[i][2] FROM generate_subscripts(told, 1) AS i;
END
$$;
COMMENT ON FUNCTION pgtrickle.preview(text, text) IS
    'What the database knows of a query before a stream table is made of it: whether it can be refreshed '
    'differentially, its sources, and what PostgreSQL expects it to cost. Nothing is created. Errors as '
    'create_stream_table() has them. pytrickle explain --query says more.';
