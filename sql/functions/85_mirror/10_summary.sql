-- Sums over the refreshes that the history still has, under the names of pg_trickle.

CREATE OR REPLACE VIEW pgtrickle.pgt_refresh_summary AS
SELECT t.pgt_id, s.total_refreshes, s.successful_refreshes, s.failed_refreshes,
    s.total_rows_inserted, s.total_rows_updated, s.total_rows_deleted, s.total_duration_ms,
    l.action AS last_refresh_action, l.status AS last_refresh_status, t.last_refresh_at, s.stats_reset_at,
    s.total_full_refreshes,
    s.total_diff_refreshes, s.total_delta_rows_processed, f.reason AS last_full_reason,
    f.reason AS last_full_reason_detail, GREATEST(t.created_at, l.finished_at) AS updated_at
FROM pgtrickle.pgt_stream_tables AS t CROSS JOIN LATERAL (
    SELECT count(*) AS total_refreshes, count(*) FILTER (WHERE h.status = 'COMPLETED') AS successful_refreshes,
        count(*) FILTER (WHERE h.status = 'FAILED') AS failed_refreshes,
        COALESCE(sum(h.rows_inserted), 0)::bigint AS total_rows_inserted,
        COALESCE(sum(h.rows_updated), 0)::bigint AS total_rows_updated,
        COALESCE(sum(h.rows_deleted), 0)::bigint AS total_rows_deleted,
        COALESCE(sum(h.duration_ms), 0)::bigint AS total_duration_ms, min(h.started_at) AS stats_reset_at,
        count(*) FILTER (WHERE h.status = 'COMPLETED' AND h.action IN ('FULL', 'REINITIALIZE')) AS total_full_refreshes,
        count(*) FILTER (WHERE h.status = 'COMPLETED' AND h.action = 'DIFFERENTIAL') AS total_diff_refreshes,
        COALESCE(sum(h.delta_rows), 0)::bigint AS total_delta_rows_processed
    FROM pgtrickle.pgt_refresh_history AS h WHERE h.pgt_id = t.pgt_id AND h.status <> 'SKIPPED') AS s
LEFT JOIN LATERAL (
    SELECT h.action, h.status, h.finished_at FROM pgtrickle.pgt_refresh_history AS h WHERE h.pgt_id = t.pgt_id
    ORDER BY h.refresh_id DESC LIMIT 1) AS l ON true
LEFT JOIN LATERAL (
    SELECT h.reason FROM pgtrickle.pgt_refresh_history AS h
    WHERE h.pgt_id = t.pgt_id AND h.status = 'COMPLETED' AND h.action IN ('FULL', 'REINITIALIZE')
    ORDER BY h.refresh_id DESC LIMIT 1) AS f ON true;
COMMENT ON VIEW pgtrickle.pgt_refresh_summary IS
    'Sums over the refreshes of each stream table, without those that were skipped. They reach back to '
    'stats_reset_at, as far as the history does.';

CREATE OR REPLACE VIEW pgtrickle.pgt_cost_model_summary AS
SELECT h.pgt_id, avg(h.duration_ms) FILTER (WHERE h.action IN ('FULL', 'REINITIALIZE')) AS avg_full_ms,
    avg(h.duration_ms) FILTER (WHERE h.action = 'DIFFERENTIAL') AS avg_diff_ms, count(*)::integer AS sample_count,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY h.duration_ms) AS p95_ms,
    percentile_cont(0.99) WITHIN GROUP (ORDER BY h.duration_ms) AS p99_ms, max(h.finished_at) AS updated_at
FROM pgtrickle.pgt_refresh_history AS h
WHERE h.status = 'COMPLETED' AND h.action IN ('FULL', 'REINITIALIZE', 'DIFFERENTIAL') GROUP BY h.pgt_id;
COMMENT ON VIEW pgtrickle.pgt_cost_model_summary IS
    'How long refreshes of each stream table take that compute everything, and those that compute its changes.';

CREATE OR REPLACE VIEW pgtrickle.pg_stat_stream_tables AS
SELECT i.pgt_id, i.pgt_schema, i.pgt_name, i.status, i.refresh_mode, i.is_populated, i.data_timestamp, i.schedule,
    i.staleness, i.stale, i.consecutive_errors, i.needs_reinit, i.last_refresh_at, s.total_refreshes,
    s.successful_refreshes, s.failed_refreshes, s.total_rows_inserted, s.total_rows_updated, s.total_rows_deleted,
    s.total_duration_ms::double precision / NULLIF(s.total_refreshes, 0) AS avg_duration_ms,
    s.last_refresh_action AS last_action, s.last_refresh_status AS last_status, ARRAY(
        SELECT DISTINCT d.cdc_mode FROM pgtrickle.pgt_dependencies AS d
        WHERE d.pgt_id = i.pgt_id AND d.source_type = 'TABLE') AS cdc_modes,
    i.scc_id, i.last_fixpoint_iterations, i.refresh_tier
FROM pgtrickle.stream_tables_info AS i JOIN pgtrickle.pgt_refresh_summary AS s USING (pgt_id);
COMMENT ON VIEW pgtrickle.pg_stat_stream_tables IS
    'How fresh each stream table is, and the sums of pgt_refresh_summary.';

CREATE OR REPLACE VIEW pgtrickle.quick_health AS
SELECT q.total_stream_tables, q.error_tables, q.stale_tables, pgtrickle_private.refresher_runs() AS scheduler_running,
    CASE WHEN q.total_stream_tables = 0 THEN 'EMPTY' WHEN q.suspended > 0 THEN 'CRITICAL'
        WHEN q.error_tables > 0 OR q.stale_tables > 0 THEN 'WARNING' ELSE 'OK' END AS status,
    0::bigint AS broken_immediate_tables
FROM (
    SELECT count(*) AS total_stream_tables,
        count(*) FILTER (WHERE i.status = 'ERROR' OR i.consecutive_errors > 0) AS error_tables,
        count(*) FILTER (WHERE i.stale) AS stale_tables, count(*) FILTER (WHERE i.status = 'SUSPENDED') AS suspended
    FROM pgtrickle.stream_tables_info AS i) AS q;
COMMENT ON VIEW pgtrickle.quick_health IS
    'One row: EMPTY, CRITICAL while a stream table is suspended or paused, WARNING while one fails or is stale, else '
    'OK.';

CREATE OR REPLACE VIEW pgtrickle.pgt_cdc_status AS
SELECT t.pgt_schema, t.pgt_name, d.source_relid::oid AS source_relid, c.relname AS source_name,
    n.nspname AS source_schema, d.cdc_mode, k.slot_name, NULL::pg_lsn AS decoder_confirmed_lsn,
    NULL::timestamptz AS transition_started_at
FROM pgtrickle.pgt_dependencies AS d JOIN pgtrickle.pgt_stream_tables AS t USING (pgt_id)
    LEFT JOIN pg_catalog.pg_class AS c ON c.oid = d.source_relid
    LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pgtrickle.pgt_change_tracking AS k ON k.source_relid = d.source_relid
WHERE d.source_type = 'TABLE';
COMMENT ON VIEW pgtrickle.pgt_cdc_status IS
    'The base tables that each stream table reads, and the trigger that captures their inserts. No slots are used.';

CREATE OR REPLACE VIEW pgtrickle.pg_stat_pgtrickle AS
SELECT i.pgt_id, i.pgt_schema AS schema_name, i.pgt_name AS table_name, s.total_refreshes, s.total_full_refreshes,
    s.total_diff_refreshes, s.total_delta_rows_processed, p.avg_refresh_duration_ms,
    p.places[1] AS p95_refresh_duration_ms, p.places[2] AS p99_refresh_duration_ms, i.last_refresh_at,
    extract(epoch FROM pg_catalog.clock_timestamp() - i.data_timestamp) * 1000 AS current_lag_ms,
    i.requested_refresh_mode, i.target_freshness_mode, i.freshness_deadline_ms AS target_freshness_ms,
    s.last_full_reason, s.last_full_reason_detail, i.last_error_message AS last_error, i.last_error_at,
    s.stats_reset_at, NULL::double precision AS p95_freshness_ms, NULL::text AS sla_status
FROM pgtrickle.stream_tables_info AS i JOIN pgtrickle.pgt_refresh_summary AS s USING (pgt_id) CROSS JOIN LATERAL (
    SELECT avg(h.duration_ms) AS avg_refresh_duration_ms,
        percentile_cont('{0.95,0.99}'::double precision[]) WITHIN GROUP (ORDER BY h.duration_ms) AS places
    FROM pgtrickle.pgt_refresh_history AS h WHERE h.pgt_id = i.pgt_id AND h.status = 'COMPLETED') AS p;
COMMENT ON VIEW pgtrickle.pg_stat_pgtrickle IS
    'How long refreshes of each stream table take, and how far its data is behind. Freshness is not measured against a '
    'target.';

CREATE OR REPLACE VIEW pgtrickle.pg_stat_progress_pgtrickle AS
SELECT NULL::bigint AS operation_id, NULL::text AS pgt_schema, NULL::text AS pgt_name, NULL::text AS phase,
    NULL::bigint AS rows_processed, NULL::bigint AS estimated_rows, NULL::double precision AS elapsed_seconds,
    NULL::timestamptz AS started_at, NULL::timestamptz AS last_progress_at, NULL::text AS status
WHERE false;
COMMENT ON VIEW pgtrickle.pg_stat_progress_pgtrickle IS
    'No rows: a refresh is written in one transaction, and nothing of it is seen before.';
