-- PostgreSQL clones row triggers of a partitioned table onto each new partition, and asks whether the role that makes
-- one may call their functions. Without a right on their schema it cannot name them, so that it can do nothing else.

CREATE OR REPLACE FUNCTION pgtrickle_private.partition_makers()
    RETURNS TABLE (callable regprocedure, role_name name, granted boolean)
    LANGUAGE sql STABLE ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
    SELECT DISTINCT p.oid::regprocedure, pg_get_userbyid(c.relowner),
        has_function_privilege(c.relowner, p.oid, 'EXECUTE')
    FROM pg_proc AS p JOIN pg_trigger AS t ON t.tgfoid = p.oid JOIN pg_class AS c ON c.oid = t.tgrelid
    WHERE p.pronamespace = 'pgtrickle_changes'::regnamespace AND t.tgtype::integer & 1 = 1
        AND c.relkind = 'p' AND c.relowner <> p.proowner
$$;
COMMENT ON FUNCTION pgtrickle_private.partition_makers() IS
    'Which functions of row triggers the owners of partitioned sources must be able to call to make partitions, and '
    'whether they are.';

CREATE OR REPLACE FUNCTION pgtrickle_private.admit_partition_makers() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    maker record;
BEGIN
    FOR maker IN SELECT m.callable, m.role_name FROM partition_makers() AS m WHERE NOT m.granted LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', maker.callable, maker.role_name);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.admit_partition_makers() IS
    'Lets the owners of partitioned sources make partitions of them.';
