-- What the group roles may do, for those who let an install create them.

CREATE OR REPLACE FUNCTION pgtrickle_private.group_role(purpose text) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT g.role_name
        FROM pgt_group_roles AS g JOIN pg_roles AS r ON r.oid = g.role_oid AND r.rolname = g.role_name
        WHERE g.purpose = group_role.purpose);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.group_role(text) IS
    'The group role for this purpose, or NULL where there is none, or it is not the one that was created.';

CREATE OR REPLACE FUNCTION pgtrickle_private.grant_to_readers(stream_table regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    readers CONSTANT text := group_role('reader');
BEGIN
    IF readers IS NOT NULL THEN
        EXECUTE format('GRANT SELECT ON %s TO %I', stream_table, readers);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.grant_to_readers(regclass) IS
    'Lets the group of readers, if there is one, read a stream table.';

-- An operator changes the state of stream tables, never what they are: the columns that the four functions read and
-- write.
CREATE OR REPLACE FUNCTION pgtrickle_private.operated_columns()
    RETURNS TABLE (relation regclass, column_name name, privileges text[])
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT 'pgtrickle.pgt_stream_tables'::regclass, c.name, '{SELECT,UPDATE}'::text[]
    FROM unnest('{paused,consecutive_failures,retry_at,status,fuse_blown_at,reinitialize_reason,recomputation_asked}'
        ::name[]) AS c(name)
    UNION ALL
    SELECT 'pgtrickle.pgt_stream_tables', c.name, '{SELECT}'
    FROM unnest('{pgt_id,pgt_relid,pgt_schema,pgt_name,frontier_version}'::name[]) AS c(name)
    UNION ALL VALUES
        ('pgtrickle.pgt_refresh_requests'::regclass, 'pgt_id'::name, '{INSERT}'::text[]),
        ('pgtrickle.pgt_refresh_requests', 'request_id', '{SELECT}')
$$;
COMMENT ON FUNCTION pgtrickle_private.operated_columns() IS
    'The columns of the catalog that the group of operators may use, and how.';

CREATE OR REPLACE FUNCTION pgtrickle_private.operator_functions() RETURNS SETOF regprocedure
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT p.oid::regprocedure FROM pg_proc AS p
    WHERE p.pronamespace IN ('pgtrickle'::regnamespace, 'pgtrickle_private'::regnamespace) AND p.proname IN (
        'pause_stream_table', 'resume_stream_table', 'refresh_stream_table', 'refresh_if_stale', 'reset_fuse',
        'refresh_or_file', 'file_request', 'refresh_patience', 'why_not_wait', 'own_locks', 'refresher_runs',
        'tell_of_unseen_rows', 'ask_refresher', 'filled_at', 'drain', 'quiesce', 'pause_all', 'resume_all',
        'resume_after_drain', 'begin_drain', 'end_drain', 'is_drained', 'foreign_setting',
        'reinitialize_stream_table', 'ask_for_recomputation',
        'stream_table_id', 'relation_named', 'check_choice', 'refuse_value', 'tell')
$$;
COMMENT ON FUNCTION pgtrickle_private.operator_functions() IS 'The functions that the group of operators may call.';

CREATE OR REPLACE FUNCTION pgtrickle_private.group_grants()
    RETURNS TABLE (object text, role_name text, privilege text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT 'SCHEMA ' || s.name, group_role(g.purpose), 'USAGE'
    FROM pgt_group_roles AS g JOIN (VALUES ('pgtrickle'), ('pgtrickle_private'), ('pgtrickle_sinks')) AS s(name)
        ON s.name <> 'pgtrickle_sinks' OR g.purpose = 'loader'
    UNION ALL
    SELECT format('%s (%I)', c.relation, c.column_name), group_role('operator'), unnest(c.privileges)
    FROM operated_columns() AS c
    UNION ALL
    SELECT f::text, group_role('operator'), 'EXECUTE' FROM operator_functions() AS f
    UNION ALL
    SELECT m.callable::text, m.role_name, 'EXECUTE' FROM partition_makers() AS m
$$;
COMMENT ON FUNCTION pgtrickle_private.group_grants() IS
    'What is granted on the catalog to the group roles, where there are any, and to who makes partitions of sources.';

CREATE OR REPLACE FUNCTION pgtrickle_private.grant_to_operators() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    operators CONSTANT text := group_role('operator');
    item record;
BEGIN
    IF operators IS NULL THEN
        RETURN;
    END IF;
    FOR item IN SELECT c.relation, c.column_name, unnest(c.privileges) AS privilege FROM operated_columns() AS c LOOP
        EXECUTE format('GRANT %s (%I) ON %s TO %I', item.privilege, item.column_name, item.relation, operators);
    END LOOP;
    FOR item IN SELECT f.callable FROM operator_functions() AS f(callable) LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', item.callable, operators);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.grant_to_operators() IS
    'Lets the group of operators, if there is one, pause, resume and refresh stream tables, and decide about their '
    'fuses.';

CREATE OR REPLACE FUNCTION pgtrickle_private.grant_to_groups() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    member text;
BEGIN
    -- The owners have it already. But what a role may in this database keeps another database of the cluster, which was
    -- copied from it, from dropping the role.
    FOR member IN SELECT group_role(purpose) FROM pgt_group_roles WHERE group_role(purpose) IS NOT NULL LOOP
        EXECUTE format('GRANT USAGE ON SCHEMA pgtrickle, pgtrickle_private TO %I', member);
    END LOOP;
    member := group_role('loader');
    IF member IS NOT NULL THEN
        EXECUTE format('GRANT USAGE ON SCHEMA pgtrickle_sinks TO %I', member);
    END IF;
    PERFORM grant_to_operators();
    PERFORM grant_to_readers(t.pgt_relid) FROM pgt_stream_tables AS t JOIN pg_class AS c ON c.oid = t.pgt_relid;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.grant_to_groups() IS
    'Grants to the group roles what they may do in this database; every install does so anew.';
