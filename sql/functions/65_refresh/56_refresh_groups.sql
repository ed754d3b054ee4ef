-- Refresh groups: stream tables that are refreshed together.

CREATE OR REPLACE FUNCTION pgtrickle_private.refresh_group_members(members text[], search_path text) RETURNS regclass[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    found regclass[];
BEGIN
    SELECT array_agg(t.pgt_relid ORDER BY m.position) INTO found
    FROM unnest(members) WITH ORDINALITY AS m(name, position)
    JOIN pgt_stream_tables AS t ON t.pgt_id = stream_table_id(m.name, search_path);
    IF cardinality(found) <> (SELECT count(DISTINCT f) FROM unnest(found) AS f)::integer THEN
        RAISE EXCEPTION 'a stream table is named twice: %', array_to_string(members, ', ')
            USING ERRCODE = '22023', CONSTRAINT = 'invalid_argument', HINT = 'Name each stream table once.';
    ELSIF COALESCE(cardinality(found), 0) < 2 THEN
        RAISE EXCEPTION 'a refresh group needs two stream tables at least, and % given',
            COALESCE('only ' || qualified_name(found[1]) || ' is', 'none is')
            USING ERRCODE = '22023', CONSTRAINT = 'invalid_argument', HINT = 'Name two stream tables or more.';
    END IF;
    RETURN found;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refresh_group_members(text[], text) IS
    'The stream tables of these names; an error unless they are two or more, each once.';

CREATE OR REPLACE FUNCTION pgtrickle.create_refresh_group(
        group_name text, members text[], isolation text DEFAULT 'repeatable_read',
            search_path text DEFAULT current_setting('search_path')) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id integer;
BEGIN
    IF group_name IS NULL OR group_name = '' THEN
        PERFORM refuse_value('group_name', group_name, 'Give the group a name.');
    END IF;
    PERFORM check_choice('isolation', lower(isolation), 'repeatable_read', 'read_committed');
    INSERT INTO pgt_refresh_groups AS g (group_name, members, isolation)
    VALUES (group_name, refresh_group_members(members, search_path), lower(isolation))
    ON CONFLICT ON CONSTRAINT pgt_refresh_groups_group_name_key DO NOTHING RETURNING g.group_id INTO id;
    IF id IS NULL THEN
        RAISE EXCEPTION 'refresh group % already exists', quote_literal(group_name)
            USING ERRCODE = '42710', CONSTRAINT = 'invalid_argument', HINT = 'Drop it first, or choose another name.';
    END IF;
    PERFORM tell('pgtrickle_refresh', jsonb_build_object('refresh_group', group_name));
    RETURN id;
END
$$;
COMMENT ON FUNCTION pgtrickle.create_refresh_group(text, text[], text, text) IS
    'Has stream tables refreshed together: in one transaction (repeatable_read), or whenever one of them is due '
    '(read_committed).';

CREATE OR REPLACE FUNCTION pgtrickle.drop_refresh_group(group_name text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    DELETE FROM pgt_refresh_groups AS g WHERE g.group_name = drop_refresh_group.group_name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no refresh group %', quote_nullable(group_name)
            USING ERRCODE = '42704', CONSTRAINT = 'unknown_refresh_group',
                HINT = did_you_mean(group_name, (SELECT array_agg(g.group_name) FROM refresh_groups() AS g))
                       || 'SELECT * FROM pgtrickle.refresh_groups() lists them.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.drop_refresh_group(text) IS
    'Drops a refresh group; its members are refreshed on their own again.';

CREATE OR REPLACE FUNCTION pgtrickle.refresh_groups()
    RETURNS TABLE (group_id integer, group_name text, member_count integer, isolation text, created_at timestamptz,
        members text[])
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT g.group_id, g.group_name, cardinality(g.members), g.isolation, g.created_at,
        ARRAY(SELECT qualified_name(m) FROM unnest(g.members) AS m)
    FROM pgt_refresh_groups AS g ORDER BY 2
$$;
COMMENT ON FUNCTION pgtrickle.refresh_groups() IS 'The refresh groups.';

-- A member that is dropped leaves its groups; a group of one is none.
CREATE OR REPLACE FUNCTION pgtrickle_private.leave_refresh_groups() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF is_copied() THEN
        RETURN NULL;
    END IF;
    DELETE FROM pgt_refresh_groups WHERE OLD.pgt_relid = ANY (members) AND cardinality(members) <= 2;
    UPDATE pgt_refresh_groups SET members = array_remove(members, OLD.pgt_relid) WHERE OLD.pgt_relid = ANY (members);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.leave_refresh_groups() IS
    'Takes a dropped stream table out of its refresh groups.';

CREATE OR REPLACE TRIGGER leave_refresh_groups AFTER DELETE ON pgtrickle.pgt_stream_tables
    FOR EACH ROW EXECUTE FUNCTION pgtrickle_private.leave_refresh_groups();
ALTER TABLE pgtrickle.pgt_stream_tables ENABLE ALWAYS TRIGGER leave_refresh_groups;
