-- Queries that cannot become a stream table.

CREATE OR REPLACE FUNCTION pgtrickle.refuse_query(message text, hint text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = message, ERRCODE = '0A000', CONSTRAINT = 'query_refused', HINT = hint;
END
$$;
COMMENT ON FUNCTION pgtrickle.refuse_query(text, text) IS 'Error 0A000: the defining query cannot be kept up to date.';

CREATE OR REPLACE FUNCTION pgtrickle.refuse_volatile(view regclass) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    volatile_function text;
BEGIN
    SELECT p.oid::regprocedure::text INTO volatile_function
    FROM query_functions(view) AS f JOIN pg_proc AS p ON p.oid = f WHERE p.provolatile = 'v' ORDER BY 1 LIMIT 1;
    IF volatile_function IS NOT NULL THEN
        PERFORM refuse_query(format('the defining query calls the volatile function %s', volatile_function),
            'Compute the value when rows are written, or declare your own function STABLE or IMMUTABLE if it is.');
    ELSIF EXISTS (SELECT FROM query_trees(view) WHERE tree LIKE '%:tablesample {%') THEN
        PERFORM refuse_query('the defining query uses TABLESAMPLE, which gives other rows each time', 'Filter on a hash of a key instead.');
    ELSIF EXISTS (SELECT FROM query_trees(view) WHERE tree LIKE '%{ROWMARKCLAUSE %') THEN
        PERFORM refuse_query('the defining query locks rows', 'Leave FOR UPDATE, FOR SHARE and the like out: a refresh only reads.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.refuse_volatile(regclass) IS
    'Error 0A000 if a view gives another result each time it is read, or locks what it reads.';

CREATE OR REPLACE FUNCTION pgtrickle.refuse_temporary(query text, search_path text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp SET client_min_messages = warning
AS $$
DECLARE
    statement CONSTANT text := format(E'CREATE TEMPORARY VIEW pgtrickle_probe AS (\n%s\n)', query);
    temporary_table text;
BEGIN
    PERFORM set_config('search_path', search_path, true);
    EXECUTE statement;
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pgtrickle, pg_temp', true);
    SELECT c.relname INTO temporary_table
    FROM query_relations('pg_temp.pgtrickle_probe') AS r JOIN pg_class AS c ON c.oid = r.relid AND c.relpersistence = 't' LIMIT 1;
    PERFORM refuse_query(format('the defining query reads the temporary table %s', temporary_table),
        'No other session sees a temporary table. Use an ordinary one.');
END
$$;
COMMENT ON FUNCTION pgtrickle.refuse_temporary(text, text) IS
    'Error 0A000 naming the temporary table a query reads; the error of PostgreSQL if the query is wrong otherwise.';

CREATE OR REPLACE FUNCTION pgtrickle.check_source_rights(view regclass) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    refused text;
BEGIN
    SELECT r.relid::regclass::text INTO refused FROM query_relations(view) AS r
    WHERE NOT has_table_privilege(r.relid, 'SELECT') AND NOT (
        has_any_column_privilege(r.relid, 'SELECT')
        AND (SELECT bool_and(has_column_privilege(r.relid, name, 'SELECT'))
             FROM unnest(columns_read(view, r.relid, r.whole_row)) AS name) IS NOT FALSE)
    ORDER BY 1 LIMIT 1;
    IF refused IS NOT NULL THEN
        RAISE EXCEPTION 'permission denied for %', refused
            USING ERRCODE = '42501', CONSTRAINT = 'insufficient_privilege',
                  HINT = format('GRANT SELECT ON %s TO %I.', refused, current_user);
    END IF;
    SELECT s.source_relid::text INTO refused FROM query_sources(view) AS s JOIN pg_class AS c ON c.oid = s.source_relid
    WHERE s.source_type <> 'UNCAPTURED' AND NOT pg_has_role(c.relowner, 'USAGE') ORDER BY 1 LIMIT 1;
    IF refused IS NOT NULL THEN
        RAISE EXCEPTION 'only the owner of % can have its changes captured', refused
            USING ERRCODE = '42501', CONSTRAINT = 'insufficient_privilege',
                  HINT = 'Create the stream table as a member of the role that owns its sources.';
    END IF;
    SELECT r.relid::regclass::text INTO refused FROM query_relations(view) AS r WHERE row_security_active(r.relid) ORDER BY 1 LIMIT 1;
    IF refused IS NOT NULL THEN
        PERFORM refuse_query(format('row-level security filters what %I sees of %s', current_user, refused),
            'Create and refresh the stream table as a role that the policies do not apply to.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.check_source_rights(regclass) IS
    'Error 42501 unless the current role may read, and have captured, what a view reads; 0A000 where row-level security applies to it.';

-- PostgreSQL prints a view so that it means something else where it tells apart what is written alike: keys of grouping
-- sets by the output columns that they were written for, and the columns of a join's alias that have the same name.
CREATE OR REPLACE FUNCTION pgtrickle.refuse_misprinted(view regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp SET client_min_messages = warning
AS $$
DECLARE
    printed CONSTANT text := view::text || '_printed';
    keys bigint[];
    names text[];
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_rewrite AS r WHERE r.ev_class = view
            AND r.ev_action::text ~ ':groupingSets \(\{|:varattno 0 :vartype 2249 |:row_format 2 |:values_lists \(<>')
    THEN
        RETURN;
    END IF;
    BEGIN
        EXECUTE format('CREATE VIEW %s AS %s', printed, pg_get_viewdef(view));
    EXCEPTION
        WHEN syntax_error THEN
            PERFORM refuse_query('PostgreSQL prints the defining query as text that it cannot read itself', 'Leave out VALUES without columns.');
    END;
    SELECT array_agg(t.keys ORDER BY t.is_own), array_agg(t.names ORDER BY t.is_own) INTO keys, names
    FROM (
        SELECT r.ev_class = view AS is_own,
            (SELECT count(*) FROM regexp_matches(r.ev_action::text, ':tleSortGroupRef', 'g')) AS keys,
            (SELECT string_agg(m.part[1], ' ' ORDER BY m.place)
             FROM regexp_matches(r.ev_action::text, '(?::eref \{ALIAS :aliasname \S+|:row_format 2) :colnames \(([^)]*)\)', 'g')
                 WITH ORDINALITY AS m(part, place)) AS names
        FROM pg_rewrite AS r WHERE r.ev_class IN (view, printed::regclass)) AS t;
    EXECUTE format('DROP VIEW %s', printed);
    IF keys[1] <> keys[2] THEN
        PERFORM refuse_query('GROUPING SETS, ROLLUP or CUBE tell apart output columns that are the same expression',
            'Group in a subquery that gives each of them a name, such as (SELECT a AS x, a AS y FROM t) AS s.');
    ELSIF names[1] IS DISTINCT FROM names[2] THEN
        PERFORM refuse_query('the defining query uses whole rows whose columns PostgreSQL prints under other names',
            'Use the whole row of a subquery whose columns have a name each, such as (SELECT i FROM a JOIN b USING (i)) AS x.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.refuse_misprinted(regclass) IS
    'Error 0A000 if the text that PostgreSQL prints of a view means something else than the view, as with some grouping sets and whole rows.';
