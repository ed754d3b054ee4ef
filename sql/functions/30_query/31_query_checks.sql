-- Queries that cannot become a stream table.

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_query(message text, hint text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = message, ERRCODE = '0A000', CONSTRAINT = 'query_refused', HINT = hint;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_query(text, text) IS
    'Error 0A000: the defining query cannot be kept up to date.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_volatile(view regclass) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
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
        PERFORM refuse_query('the defining query uses TABLESAMPLE, which gives other rows each time',
            'Filter on a hash of a key instead.');
    ELSIF EXISTS (SELECT FROM query_trees(view) WHERE tree LIKE '%{ROWMARKCLAUSE %') THEN
        PERFORM refuse_query('the defining query locks rows',
            'Leave FOR UPDATE, FOR SHARE and the like out: a refresh only reads.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_volatile(regclass) IS
    'Error 0A000 if a view gives another result each time it is read, or locks what it reads.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_temporary(query text, search_path text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET client_min_messages = warning
AS $$
DECLARE
    statement CONSTANT text := format(E'CREATE TEMPORARY VIEW pgtrickle_probe AS (\n%s\n)', query);
    temporary_table text;
BEGIN
    PERFORM set_config('search_path', search_path, true);
    EXECUTE statement;
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pgtrickle, pgtrickle_private, pg_temp', true);
    SELECT c.relname INTO temporary_table
    FROM query_relations('pg_temp.pgtrickle_probe') AS r JOIN pg_class AS c ON c.oid = r.relid
        AND c.relpersistence = 't' LIMIT 1;
    PERFORM refuse_query(format('the defining query reads the temporary table %s', temporary_table),
        'No other session sees a temporary table. Use an ordinary one.');
EXCEPTION WHEN invalid_table_definition THEN
    NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_temporary(text, text) IS
    'Error 0A000 naming the temporary table a query reads; nothing if the query is wrong otherwise.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_source_rights(view regclass) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    refused text;
BEGIN
    PERFORM refuse_access(p.code, p.message, p.hint) FROM access_problems(view) AS p
        WHERE p.code = '42501' ORDER BY p.message LIMIT 1;
    SELECT s.source_relid::text INTO refused FROM query_sources(view) AS s JOIN pg_class AS c ON c.oid = s.source_relid
    WHERE s.source_type <> 'UNCAPTURED' AND NOT pg_has_role(c.relowner, 'USAGE') ORDER BY 1 LIMIT 1;
    IF refused IS NOT NULL THEN
        RAISE EXCEPTION 'only the owner of % can have its changes captured', refused
            USING ERRCODE = '42501', CONSTRAINT = 'insufficient_privilege',
                  HINT = 'Create the stream table as a member of the role that owns its sources.';
    END IF;
    PERFORM refuse_access(p.code, p.message, p.hint) FROM access_problems(view) AS p ORDER BY p.message LIMIT 1;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_source_rights(regclass) IS
    'Error 42501 unless everything below a view may be read by the role as which it is read there, and captured by '
    'the current role; '
    '0A000 where row-level security would hide rows from one of these roles.';

CREATE OR REPLACE FUNCTION pgtrickle_private.unreadable_part(view regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF getdatabaseencoding() <> 'SQL_ASCII' THEN
        RETURN NULL;
    END IF;
    RETURN (
        SELECT format('%s has bytes that are no UTF-8: %s', p.what, left(readable_text(p.value), 200))
        FROM (SELECT 'the name of what it reads' AS what, qualified_name(s.source_relid) AS value, 1 AS rank
              FROM query_sources(view) AS s
              UNION ALL
              SELECT 'a column of ' || readable_text(qualified_name(s.source_relid)), quote_ident(a.attname), 2
              FROM query_sources(view) AS s JOIN pg_attribute AS a
                  ON a.attrelid = s.source_relid AND a.attnum > 0 AND NOT a.attisdropped
              UNION ALL
              SELECT 'the defining query', pg_get_viewdef(b.relid), 3 FROM views_below(view) AS b(relid)) AS p
        WHERE readable_text(p.value) <> p.value ORDER BY p.rank, p.value LIMIT 1);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.unreadable_part(regclass) IS
    'What of a query, or of the names of what it reads, has bytes that are no UTF-8, as a sentence; NULL if nothing.';

-- What PostgreSQL keeps for itself, such as the trees of expressions.
CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_unreadable_types(view regclass) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    found CONSTANT oid := (
        SELECT min(t.oid) FROM parts_of_types(ARRAY(
            SELECT a.atttypid FROM pg_attribute AS a WHERE a.attrelid = view AND a.attnum > 0)) AS p(id)
        JOIN pg_type AS t ON t.oid = p.id WHERE t.typcategory = 'Z' AND t.oid <> '"char"'::regtype);
    shown text;
BEGIN
    IF found IS NOT NULL THEN
        SELECT quote_ident(a.attname) INTO shown FROM pg_attribute AS a
        WHERE a.attrelid = view AND a.attnum > 0 AND found IN (SELECT parts_of_types(ARRAY[a.atttypid]))
        ORDER BY a.attnum LIMIT 1;
        PERFORM refuse_query(format('the column %s has values of type %s, which PostgreSQL shows but does not read',
            shown, found::regtype), format('Cast it to text: CAST(%s AS text).', shown));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_unreadable_types(regclass) IS
    'Error 0A000 if a column of a view has values that cannot be read in as PostgreSQL shows them.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_query(view regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM refuse_volatile(view);
    PERFORM refuse_reserved_columns(view);
    PERFORM refuse_unreadable_types(view);
    PERFORM refuse_domain(view);
    PERFORM check_source_rights(view);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_query(regclass) IS
    'The error of create_stream_table() for a query that cannot become a stream table of the current role.';
