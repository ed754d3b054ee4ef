-- What is being refreshed at this moment: each session that works for a refresh bears its stream table's number.

CREATE OR REPLACE FUNCTION pgtrickle.running()
    RETURNS TABLE (stream_table text, since timestamptz, sessions integer)
    LANGUAGE sql STABLE SECURITY DEFINER ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT format('%I.%I', t.pgt_schema, t.pgt_name), min(a.xact_start), count(*)::integer
    FROM pg_stat_activity AS a JOIN pgt_stream_tables AS t
        ON a.application_name = 'pytrickle/refresher of ' || t.pgt_id
    WHERE a.datid = own_database() AND a.backend_type = 'client backend'
        AND pg_has_role(a.usesysid, catalog_owner(), 'USAGE')
    GROUP BY t.pgt_id, t.pgt_schema, t.pgt_name ORDER BY 2, 1
$$;
COMMENT ON FUNCTION pgtrickle.running() IS
    'The stream tables that are being refreshed now, by which process ever: since when, and by how many sessions. Of '
    'those that form one transaction, the one at work.';
