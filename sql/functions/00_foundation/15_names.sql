-- Which object a name means to its caller.

-- What is stored is compared with what another session writes, so no setting may decide about quotes.
CREATE OR REPLACE FUNCTION pgtrickle_private.qualified_name(relation regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET quote_all_identifiers = off
AS $$
BEGIN
    RETURN (
        SELECT COALESCE(
            (SELECT format('%I.%I', n.nspname, c.relname)
             FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = relation),
            relation::text));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.qualified_name(regclass) IS
    'Schema and name of a relation, quoted as needed; its number if it no longer exists.';

CREATE OR REPLACE FUNCTION pgtrickle_private.parts_of_name(
        relation regclass, OUT table_name text, OUT schema_name text, OUT qualified text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT COALESCE(max(c.relname), relation::text), max(n.nspname), qualified_name(relation)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = relation
$$;
COMMENT ON FUNCTION pgtrickle_private.parts_of_name(regclass) IS
    'Name and schema of a relation, each as it is, and both together, quoted as needed; without a schema its number if '
    'it no longer exists.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_name(name text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION '% is no name as SQL writes it', quote_literal(name)
        USING ERRCODE = '42602', CONSTRAINT = 'invalid_argument',
              HINT = 'Put a name that has spaces, dots or other signs in it in double quotes, such as "My table".';
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_name(text) IS 'Raises the error for what is no name: 42602.';

CREATE OR REPLACE FUNCTION pgtrickle_private.relation_named(name text, search_path text) RETURNS regclass
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    relation regclass;
BEGIN
    -- NULL sets the path to what it was when the session began.
    PERFORM set_config('search_path', replace(search_path, '"$user"', quote_ident(current_user)), true);
    -- From here on the caller's own functions may come first.
    BEGIN
        relation := pg_catalog.to_regclass(name);
        -- Later versions than PostgreSQL 15 know no relation of a name that is none.
        IF relation IS NULL THEN
            PERFORM pg_catalog.parse_ident(name);
        END IF;
    EXCEPTION WHEN invalid_name OR syntax_error OR invalid_parameter_value THEN
        PERFORM pgtrickle_private.refuse_name(name);
    END;
    RETURN relation;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.relation_named(text, text) IS
    'The relation a name means to its caller under a search_path, or NULL; without a path under that of the session''s '
    'beginning. Error 42602 for what is no name.';

CREATE OR REPLACE FUNCTION pgtrickle_private.source_named(name text, search_path text) RETURNS regclass
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    relation CONSTANT regclass := relation_named(name, search_path);
BEGIN
    IF relation IS NULL AND name IS NOT NULL THEN
        RAISE EXCEPTION 'relation % does not exist', quote_literal(name)
            USING ERRCODE = '42P01', CONSTRAINT = 'unknown_table',
                  HINT = did_you_mean(name, known_tables(name LIKE '%.%'))
                         || 'Qualify the name if its schema is not in your search_path.';
    END IF;
    RETURN relation;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.source_named(text, text) IS
    'The relation a name means to its caller under a search_path; NULL for NULL, error 42P01 where there is none.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_there(relation regclass) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF relation IS NOT NULL AND NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = relation) THEN
        RAISE EXCEPTION 'there is no relation with OID %', relation::oid
            USING ERRCODE = '42P01', CONSTRAINT = 'unknown_table', HINT = 'Name the table, such as ''orders''.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_there(regclass) IS
    'Error 42P01 for the number of a relation that is not there, such as 0 or that of one that was dropped.';

CREATE OR REPLACE FUNCTION pgtrickle_private.known_stream_table(relation regclass, name text) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    parts CONSTANT text[] := parse_ident(name);
BEGIN
    RETURN CASE
        WHEN relation IS NOT NULL THEN (SELECT pgt_id FROM pgt_stream_tables WHERE pgt_relid = relation)
        -- The table itself may have been dropped behind our back: its row must still be found, to be dropped as well.
        -- So must one by the name that status has until the next tick. But a name without a schema never means one that
        -- is there: that is in a schema outside the search path, or is called otherwise by now.
        ELSE (SELECT t.pgt_id FROM pgt_stream_tables AS t
              WHERE t.pgt_name = parts[cardinality(parts)] AND CASE WHEN cardinality(parts) > 1
                  THEN t.pgt_schema = parts[1] ELSE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = t.pgt_relid) END
              ORDER BY t.pgt_id LIMIT 1)
    END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.known_stream_table(regclass, text) IS
    'Number of the stream table that a relation is or, where there is no such relation, of one that had this name: '
    'with its schema, or one that was dropped; NULL if there is none.';

CREATE OR REPLACE FUNCTION pgtrickle_private.stream_table_relation(p_pgt_id bigint) RETURNS regclass
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT t.pgt_relid FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id
$$;
COMMENT ON FUNCTION pgtrickle_private.stream_table_relation(bigint) IS
    'The relation that a stream table of this number is.';

CREATE OR REPLACE FUNCTION pgtrickle_private.stream_table_id(name text, search_path text) RETURNS bigint
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT bigint := known_stream_table(relation_named(name, search_path), name);
BEGIN
    IF id IS NULL THEN
        RAISE EXCEPTION 'there is no stream table %', COALESCE(quote_literal(name), 'NULL')
            USING ERRCODE = '42704', CONSTRAINT = 'unknown_stream_table',
                  HINT = did_you_mean(name, known_stream_tables(name LIKE '%.%'))
                         || 'SELECT stream_table FROM pgtrickle.pgt_status() lists those that exist; '
                         || 'qualify the name if its schema is not in your search_path.';
    END IF;
    RETURN id;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.stream_table_id(text, text) IS
    'Number of the stream table a name means under a search_path; error 42704 if there is none.';
