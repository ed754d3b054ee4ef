-- What a stream table is created from: its name, and its query as a hidden view.

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_value(parameter text, value text, hint text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING
        MESSAGE = CASE WHEN value IS NULL THEN format('%s must not be NULL', parameter)
                       ELSE format('%s is not a valid %s', quote_literal(value), parameter) END,
        ERRCODE = CASE WHEN value IS NULL THEN '22004' ELSE '22023' END, CONSTRAINT = 'invalid_argument', HINT = hint;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_value(text, text, text) IS
    'Error 22004 for a NULL argument, 22023 for any other value.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_span(parameter text, given interval) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET IntervalStyle = 'postgres'
AS $$
BEGIN
    IF given IS NULL OR given < interval '0' THEN
        PERFORM refuse_value(parameter, given::text, 'Use an interval of zero or more, such as ''30 days''.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_span(text, interval) IS 'Refuses an interval that is NULL or negative.';

CREATE OR REPLACE FUNCTION pgtrickle_private.read_moment(parameter text, given text) RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN given::timestamptz;
EXCEPTION WHEN data_exception THEN
    PERFORM refuse_value(parameter, given, 'Give a date and time, such as ''2026-03-01 12:00+00''.');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.read_moment(text, text) IS 'The moment that a text says; refuses any other text.';

CREATE OR REPLACE FUNCTION pgtrickle_private.read_span(parameter text, given text) RETURNS interval
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN given::interval;
EXCEPTION WHEN data_exception THEN
    PERFORM refuse_value(parameter, given, 'Give an interval, such as ''30 seconds'', or a number of seconds.');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.read_span(text, text) IS 'The interval that a text says; refuses any other text.';

CREATE OR REPLACE FUNCTION pgtrickle_private.row_limit(max_rows integer) RETURNS integer
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF max_rows < 0 THEN
        PERFORM refuse_value('max_rows', max_rows::text, 'Use 0 or more, or NULL for all rows.');
    END IF;
    RETURN max_rows;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.row_limit(integer) IS 'The limit of a report, unless it is negative.';

CREATE OR REPLACE FUNCTION pgtrickle_private.creation_schema(search_path text) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM set_config('search_path', search_path, true);
    RETURN pg_catalog.current_schema();
END
$$;
COMMENT ON FUNCTION pgtrickle_private.creation_schema(text) IS
    'The schema in which an unqualified new table is created under a search_path, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.new_relation_name(name text, search_path text, OUT schema_name text,
    OUT table_name text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    parts text[];
BEGIN
    IF name IS NULL THEN
        PERFORM refuse_value('name', NULL, 'Give the stream table a name.');
    END IF;
    PERFORM refuse_unreadable('the name', name);
    BEGIN
        parts := parse_ident(name);
    EXCEPTION WHEN invalid_parameter_value THEN
        PERFORM refuse_name(name);
    END;
    schema_name := CASE cardinality(parts) WHEN 1 THEN creation_schema(search_path) WHEN 2 THEN parts[1] END;
    table_name := parts[cardinality(parts)];
    IF cardinality(parts) > 2 OR octet_length(table_name) > 63 OR octet_length(schema_name) > 63
        OR schema_name ~ '^(pg_|pgtrickle$|pgtrickle_changes$|pgtrickle_private$|pgtrickle_sinks$|pgtrickle_state$|'
            'information_schema$)'
    THEN
        PERFORM refuse_value(
            'name', name, 'Use name or schema.name, each of at most 63 bytes, in a schema of your own.');
    ELSIF schema_name IS NULL OR to_regnamespace(quote_ident(schema_name)) IS NULL THEN
        RAISE EXCEPTION 'schema % does not exist', COALESCE(quote_literal(schema_name), 'to create in')
            USING ERRCODE = '3F000', CONSTRAINT = 'invalid_argument',
                  HINT = 'Create the schema first, or qualify the name.';
    ELSIF to_regclass(format('%I.%I', schema_name, table_name)) IS NOT NULL
        OR EXISTS (SELECT FROM pgt_stream_tables WHERE pgt_schema = schema_name AND pgt_name = table_name)
    THEN
        RAISE EXCEPTION 'relation %.% already exists', quote_ident(schema_name), quote_ident(table_name)
            USING ERRCODE = '42P07', CONSTRAINT = 'stream_table_exists',
                  HINT = 'Choose another name, or drop the existing one with pgtrickle.drop_stream_table() if it is a '
                      'stream table.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.new_relation_name(text, text) IS
    'Schema and name a new stream table gets; error 42P07 if taken.';

-- A semicolon that only comments follow, of several the last: parentheses around the query leave no room for it.
CREATE OR REPLACE FUNCTION pgtrickle_private.without_last_semicolon(query text) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
    SELECT regexp_replace(query, '^(.*);((\s|--[^\n]*(\n|$)|/\*([^*]|\*+[^*/])*\*+/)*)$', '\1 \2')
$$;
COMMENT ON FUNCTION pgtrickle_private.without_last_semicolon(text) IS
    'The query without its last semicolon, if nothing but comments follows it; otherwise as it was.';

-- A cursor takes one statement only, and opening it runs nothing of it.
CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_statements(query text, search_path text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    statement refcursor;
BEGIN
    PERFORM set_config('search_path', search_path, true);
    OPEN statement FOR EXECUTE pg_catalog.format(E'(%s\n)', query);
    CLOSE statement;
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pgtrickle, pgtrickle_private, pg_temp', true);
EXCEPTION WHEN invalid_cursor_definition THEN
    PERFORM pgtrickle_private.refuse_query('the text of the defining query holds more than one statement',
        'Give one SELECT statement.');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_statements(text, text) IS
    'Error 0A000 if a text is several statements once it stands in parentheses; the error of PostgreSQL if it is none.';

-- What PL/pgSQL catches has lost its place. PostgreSQL tells it once more when it reads the text alone, and then the
-- statement that it shows is the user's.
CREATE OR REPLACE FUNCTION pgtrickle_private.read_query(query text, search_path text, code text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    statement refcursor;
BEGIN
    PERFORM set_config('search_path', search_path, true);
    OPEN statement FOR EXECUTE query;
    CLOSE statement;
EXCEPTION WHEN OTHERS THEN
    IF SQLSTATE = code THEN
        RAISE;
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.read_query(text, text, text) IS
    'The error of PostgreSQL for a query by itself, if it has this SQLSTATE: that of the same query as a view.';

CREATE OR REPLACE FUNCTION pgtrickle_private.raise_anew(code text, said text, detail text, hint text, violated text)
    RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF detail = '' AND hint = '' THEN
        RAISE EXCEPTION USING MESSAGE = said, ERRCODE = code, CONSTRAINT = violated;
    ELSIF detail = '' THEN
        RAISE EXCEPTION USING MESSAGE = said, ERRCODE = code, CONSTRAINT = violated, HINT = hint;
    ELSIF hint = '' THEN
        RAISE EXCEPTION USING MESSAGE = said, ERRCODE = code, CONSTRAINT = violated, DETAIL = detail;
    END IF;
    RAISE EXCEPTION USING MESSAGE = said, ERRCODE = code, CONSTRAINT = violated, DETAIL = detail, HINT = hint;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.raise_anew(text, text, text, text, text) IS
    'Raises an error that was caught again, without the statement in which it arose. An empty detail or hint is left '
    'out.';

CREATE OR REPLACE FUNCTION pgtrickle_private.create_view_of(query text, body text, view_name text, search_path text)
    RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    said text;
    detail text;
    hint text;
    violated text;
BEGIN
    IF strpos(body, ';') > 0 THEN
        PERFORM refuse_statements(body, search_path);
    END IF;
    PERFORM set_config('search_path', search_path, true);
    EXECUTE pg_catalog.format(E'CREATE VIEW %s AS (\n%s\n)', view_name, body);
EXCEPTION WHEN OTHERS OR query_canceled THEN
    GET STACKED DIAGNOSTICS said = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT,
        violated = CONSTRAINT_NAME;
    IF violated = '' AND SQLSTATE = '42P16' THEN
        PERFORM pgtrickle_private.refuse_temporary(body, search_path);
    ELSIF violated = '' AND SQLSTATE ~ '^(0A|22|3F|42|54)'
        AND (SQLSTATE <> '42601' OR pgtrickle_private.without_last_semicolon(body) = body)
    THEN
        PERFORM pgtrickle_private.read_query(query, search_path, SQLSTATE);
        IF SQLSTATE = '42601' THEN
            said := 'the defining query is not one SELECT statement that returns rows';
            hint := 'Give one SELECT, VALUES or TABLE: no second statement, no INTO, nothing that writes.';
        END IF;
    END IF;
    PERFORM pgtrickle_private.raise_anew(SQLSTATE, said, detail, hint, violated);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.create_view_of(text, text, text, text) IS
    'Creates a view of the body of a query. An error tells its place in the query, and never shows the view.';

-- The parentheses keep a second statement out that does not close them, the line breaks a trailing comment in. What
-- stands behind the end of the query may itself contain semicolons, so they go one by one from the end until PostgreSQL
-- can parse the rest. None within a string is ever reached: strings stand before the end.
CREATE OR REPLACE FUNCTION pgtrickle_private.create_query_view(pgt_id bigint, query text, search_path text)
    RETURNS regclass
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET client_min_messages = warning
AS $$
DECLARE
    view_name CONSTANT text := format('pgtrickle_state.query_%s', pgt_id);
    body text := query;
    shorter text;
BEGIN
    IF query IS NULL THEN
        PERFORM refuse_value('query', NULL, 'Give a SELECT statement.');
    END IF;
    PERFORM refuse_unreadable('the defining query', query);
    LOOP
        BEGIN
            PERFORM create_view_of(query, body, view_name, search_path);
            EXIT;
        EXCEPTION WHEN syntax_error THEN
            shorter := without_last_semicolon(body);
            IF shorter = body THEN
                RAISE;
            END IF;
            body := shorter;
        END;
    END LOOP;
    PERFORM refuse_unreadable(unreadable_part(view_name::regclass));
    PERFORM refuse_misprinted(view_name::regclass);
    EXECUTE format('COMMENT ON VIEW %s IS %L', view_name, 'Defining query of stream table number ' || pgt_id);
    PERFORM hand_over(view_name::regclass);
    PERFORM mirror_equalities(view_name::regclass);
    RETURN view_name::regclass;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.create_query_view(bigint, text, text) IS
    'Creates the hidden view of a stream table: PostgreSQL parses and checks the query under the caller''s '
    'search_path.';

-- Its name is what PostgreSQL tells somebody who wants to drop or alter what the query reads.
CREATE OR REPLACE FUNCTION pgtrickle_private.name_query_view(stream_table pgtrickle.pgt_stream_tables) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET quote_all_identifiers = off
AS $$
DECLARE
    known CONSTANT text := format('stream table %I.%I', stream_table.pgt_schema, stream_table.pgt_name);
    wanted CONSTANT text := CASE WHEN octet_length(known) < 64 THEN known
        ELSE format('stream table number %s', stream_table.pgt_id) END;
    view CONSTANT name := (SELECT c.relname FROM pg_class AS c
        WHERE c.oid = stream_table.view_relid AND c.relnamespace = 'pgtrickle_state'::regnamespace);
BEGIN
    IF view <> wanted THEN
        EXECUTE format('ALTER VIEW pgtrickle_state.%I RENAME TO %I', view, wanted);
        EXECUTE format('COMMENT ON VIEW pgtrickle_state.%I IS %L', wanted, 'Defining query of ' || known);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.name_query_view(pgtrickle.pgt_stream_tables) IS
    'Names the hidden view after the stream table; after its number where that would be too long.';
