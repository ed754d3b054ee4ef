-- The state of single stream tables, under the names of pg_trickle.

CREATE OR REPLACE FUNCTION pgtrickle.get_staleness(name text, search_path text DEFAULT current_setting('search_path'))
    RETURNS double precision
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT extract(epoch FROM clock_timestamp() - i.data_timestamp)::double precision FROM stream_tables_info AS i
    WHERE i.pgt_id = known_stream_table(relation_named(name, search_path), name)
$$;
COMMENT ON FUNCTION pgtrickle.get_staleness(text, text) IS
    'How old the data of a stream table is, in seconds; NULL where it was never filled, or there is none of that name.';

CREATE OR REPLACE FUNCTION pgtrickle.fuse_status()
    RETURNS TABLE (stream_table text, fuse_mode text, fuse_state text, fuse_ceiling bigint, effective_ceiling bigint,
        fuse_sensitivity integer, blown_at timestamptz, blow_reason text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT i.stream_table, i.fuse_mode, i.fuse_state, i.fuse_ceiling, i.fuse_ceiling, i.fuse_sensitivity, i.blown_at,
        i.blow_reason
    FROM stream_tables_info AS i ORDER BY 1
$$;
COMMENT ON FUNCTION pgtrickle.fuse_status() IS 'The fuse of each stream table.';

CREATE OR REPLACE FUNCTION pgtrickle.pgt_scc_status()
    RETURNS TABLE (scc_id integer, member_count integer, members text[], last_iterations integer,
        last_converged_at timestamptz)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT i.scc_id, count(*)::integer, array_agg(i.pgt_schema || '.' || i.pgt_name ORDER BY i.pgt_schema, i.pgt_name),
        max(i.last_fixpoint_iterations), max(i.last_refresh_at)
    FROM stream_tables_info AS i WHERE i.scc_id IS NOT NULL GROUP BY 1 ORDER BY 1
$$;
COMMENT ON FUNCTION pgtrickle.pgt_scc_status() IS
    'The cycles of stream tables that read each other, and how many rounds each took to its last fixed point.';

CREATE OR REPLACE FUNCTION pgtrickle.diagnose_errors(name text, search_path text DEFAULT current_setting('search_path'))
    RETURNS TABLE (event_time timestamptz, error_type text, error_message text, remediation text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT bigint := stream_table_id(name, search_path);
BEGIN
    RETURN QUERY
    SELECT h.finished_at, k.kind, h.error, CASE k.kind
        WHEN 'user' THEN 'A value made the query fail: mend the row that the message is about, or the query.'
        WHEN 'schema' THEN 'Something that the query names is gone or may not be read: see check_cdc_health().'
        WHEN 'correctness' THEN 'The stored rows are not what was left: the next refresh computes everything anew.'
        WHEN 'performance' THEN 'It took too long, or too much memory: see statement_timeout and pytrickle explain.'
        ELSE 'The server, or what stands in its way: the next tick tries again.' END
    FROM refresh_history_info AS h CROSS JOIN LATERAL (
        SELECT CASE WHEN h.sqlstate ~ '^SQLSTATE (21|22|23)' OR h.sqlstate = 'EvaluationFailed' THEN 'user'
            WHEN h.sqlstate ~ '^SQLSTATE (42|3F|2B|0A)' OR h.sqlstate = 'UnknownStreamTable' THEN 'schema'
            WHEN h.sqlstate IN ('StreamTableDrifted', 'FixpointNotReached') THEN 'correctness'
            WHEN h.sqlstate ~ '^SQLSTATE (53|54|55P03|57014)' OR h.sqlstate = 'SparkOutOfMemory' THEN 'performance'
            ELSE 'infrastructure' END AS kind) AS k
    WHERE h.pgt_id = id AND h.status = 'FAILED' ORDER BY h.refresh_id DESC LIMIT 5;
END
$$;
COMMENT ON FUNCTION pgtrickle.diagnose_errors(text, text) IS
    'The last five failures of a stream table, of what kind each is (user, schema, correctness, performance or '
    'infrastructure), and what to do.';

CREATE OR REPLACE FUNCTION pgtrickle.integration_capabilities()
    RETURNS TABLE (capability text, major_version smallint, minor_version smallint, enabled boolean, details jsonb)
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT NULL::text, NULL::smallint, NULL::smallint, NULL::boolean, NULL::jsonb WHERE false
$$;
COMMENT ON FUNCTION pgtrickle.integration_capabilities() IS
    'No rows: there are no contracts for others to orchestrate.';

CREATE OR REPLACE FUNCTION pgtrickle.view_evolution_status()
    RETURNS TABLE (stream_table text, in_shadow_build boolean, shadow_table_name text, status text)
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT NULL::text, NULL::boolean, NULL::text, NULL::text WHERE false
$$;
COMMENT ON FUNCTION pgtrickle.view_evolution_status() IS
    'No rows: a new query takes the place of the old one in one transaction.';
