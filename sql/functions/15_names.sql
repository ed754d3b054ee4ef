-- Who calls, and which object a name means to them.

-- Inside SECURITY DEFINER code current_user is the owner; the caller is the role in effect outside, or who logged in.
CREATE OR REPLACE FUNCTION pgtrickle.calling_role() RETURNS name
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role')::name END
$$;
COMMENT ON FUNCTION pgtrickle.calling_role() IS
    'The role whose rights count in a SECURITY DEFINER function: the one set by SET ROLE, else the session user.';

CREATE OR REPLACE FUNCTION pgtrickle.qualified_name(relation regclass) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT COALESCE(
        (SELECT format('%I.%I', n.nspname, c.relname)
         FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = relation),
        relation::text)
$$;
COMMENT ON FUNCTION pgtrickle.qualified_name(regclass) IS
    'Schema and name of a relation, quoted as needed; its number if it no longer exists.';

CREATE OR REPLACE FUNCTION pgtrickle.relation_named(name text, search_path text) RETURNS regclass
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    PERFORM set_config('search_path', replace(search_path, '"$user"', quote_ident(calling_role())), true);
    -- From here on the caller's own functions may come first, and this may run with the rights of the owner.
    RETURN pg_catalog.to_regclass(name);
END
$$;
COMMENT ON FUNCTION pgtrickle.relation_named(text, text) IS 'The relation a name means under a search_path, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle.stream_table_id(name text, search_path text) RETURNS integer
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    relation regclass := relation_named(name, search_path);
    parts text[] := parse_ident(name);
    id integer;
BEGIN
    SELECT pgt_id INTO id FROM pgt_stream_tables WHERE pgt_relid = relation;
    IF id IS NULL AND relation IS NULL THEN
        -- The table itself may have been dropped behind our back: its row must still be found, to be dropped as well.
        SELECT pgt_id INTO id FROM pgt_stream_tables
        WHERE pgt_name = parts[cardinality(parts)] AND (cardinality(parts) = 1 OR pgt_schema = parts[1])
        ORDER BY pgt_id LIMIT 1;
    END IF;
    IF id IS NULL THEN
        RAISE EXCEPTION 'there is no stream table %', COALESCE(quote_literal(name), 'NULL')
            USING ERRCODE = '42704', CONSTRAINT = 'unknown_stream_table',
                  HINT = 'SELECT stream_table FROM pgtrickle.pgt_status() lists those that exist; '
                         || 'qualify the name if its schema is not in your search_path.';
    END IF;
    RETURN id;
END
$$;
COMMENT ON FUNCTION pgtrickle.stream_table_id(text, text) IS
    'Number of the stream table a name means under a search_path; error 42704 if there is none.';
