-- Whether all is well, under the names of pg_trickle. pytrickle doctor looks closer.

CREATE OR REPLACE FUNCTION pgtrickle.health_check()
    RETURNS TABLE (check_name text, severity text, detail text)
    LANGUAGE sql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT c.check_name, CASE c.found WHEN '{}' THEN 'OK' ELSE c.severity END,
        COALESCE(NULLIF(array_to_string(c.found, ', '), ''), 'none')
    FROM (VALUES
        ('scheduler_running', 'ERROR', CASE WHEN refresher_runs() THEN '{}'
            ELSE ARRAY['pytrickle run is not running'] END),
        ('error_tables', 'ERROR', ARRAY(
            SELECT i.stream_table FROM stream_tables_info AS i WHERE i.status IN ('ERROR', 'SUSPENDED') ORDER BY 1)),
        ('stale_tables', 'WARN', ARRAY(SELECT i.stream_table FROM stream_tables_info AS i WHERE i.stale ORDER BY 1)),
        ('needs_reinit', 'WARN', ARRAY(
            SELECT i.stream_table FROM stream_tables_info AS i WHERE i.needs_reinit ORDER BY 1)),
        ('consecutive_errors', 'WARN', ARRAY(
            SELECT i.stream_table FROM stream_tables_info AS i WHERE i.consecutive_errors > 0 ORDER BY 1)),
        ('buffer_growth', 'WARN', ARRAY(
            SELECT DISTINCT b.source_table FROM change_buffer_sizes() AS b WHERE b.pending_rows > 10000 ORDER BY 1)),
        ('slot_lag', 'WARN', '{}'),
        ('dvm_fallbacks', 'WARN', ARRAY(
            SELECT DISTINCT h.stream_table FROM refresh_history_info AS h
            WHERE h.started_at > now() - interval '1 hour' AND h.status = 'COMPLETED'
                AND strpos(h.reason, 'the differential refresh failed') > 0 ORDER BY 1)),
        ('capture', 'ERROR', ARRAY(
            SELECT c.source_table || ': ' || c.alert FROM check_cdc_health() AS c WHERE c.alert IS NOT NULL ORDER BY 1))
    ) AS c(check_name, severity, found)
$$;
COMMENT ON FUNCTION pgtrickle.health_check() IS
    'What is well (OK) and what is not (WARN, ERROR), with the stream tables or sources concerned.';

CREATE OR REPLACE FUNCTION pgtrickle.health_summary()
    RETURNS TABLE (total_stream_tables integer, active_count integer, error_count integer, suspended_count integer,
        stale_count integer, reinit_pending integer, max_staleness_seconds double precision, scheduler_status text,
        cache_hit_rate double precision)
    LANGUAGE sql STABLE ROWS 1 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT count(*)::integer, (count(*) FILTER (WHERE i.status = 'ACTIVE'))::integer,
        (count(*) FILTER (WHERE i.status = 'ERROR'))::integer,
        (count(*) FILTER (WHERE i.status = 'SUSPENDED'))::integer, (count(*) FILTER (WHERE i.stale))::integer,
        (count(*) FILTER (WHERE i.needs_reinit))::integer, max(extract(epoch FROM i.staleness))::double precision,
        CASE WHEN refresher_runs() THEN 'ACTIVE' ELSE 'STOPPED' END, NULL::double precision
    FROM stream_tables_info AS i
$$;
COMMENT ON FUNCTION pgtrickle.health_summary() IS
    'One row: how many stream tables are in which state, how stale the stalest is, and whether pytrickle run leads.';

-- The version of the package that these functions come with; a test compares them.
CREATE OR REPLACE FUNCTION pgtrickle.version() RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT '0.1.0'
$$;
COMMENT ON FUNCTION pgtrickle.version() IS
    'The version of pytrickle; version_check() has that of pg_trickle beside it.';

CREATE OR REPLACE FUNCTION pgtrickle.version_check() RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT jsonb_build_object('library_version', pgtrickle.version(), 'extension_version', pgtrickle.version(),
        'pg_version', current_setting('server_version'), 'version_match', true, 'mirrors', 'pg_trickle 0.108.3',
        'schema_version', (SELECT max(v.version) FROM pgt_schema_version AS v))::text
$$;
COMMENT ON FUNCTION pgtrickle.version_check() IS
    'As JSON: the version of pytrickle, of its catalog and of the server, and the release of pg_trickle whose names '
    'are offered here.';

CREATE OR REPLACE FUNCTION pgtrickle.parse_duration_seconds(input text) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
    SELECT CASE WHEN btrim(input) ~ '^\d{1,9}$' THEN btrim(input)::bigint
        WHEN btrim(input) ~ '^(\d{1,9}[smhdw])+$' THEN (
            SELECT sum(m[1]::bigint * CASE m[2] WHEN 's' THEN 1 WHEN 'm' THEN 60 WHEN 'h' THEN 3600 WHEN 'd' THEN 86400
                ELSE 604800 END)::bigint
            FROM regexp_matches(btrim(input), '(\d+)([smhdw])', 'g') AS m) END
$$;
COMMENT ON FUNCTION pgtrickle.parse_duration_seconds(text) IS
    'The seconds of a duration such as 1h30m or 90; NULL for anything else.';
