-- Statistics of refreshes, under the names of pg_trickle. They reach as far back as the history.

CREATE OR REPLACE FUNCTION pgtrickle.st_refresh_stats()
    RETURNS TABLE (pgt_name text, pgt_schema text, status text, refresh_mode text, is_populated boolean,
        total_refreshes bigint, successful_refreshes bigint, failed_refreshes bigint, total_rows_inserted bigint,
        total_rows_updated bigint, total_rows_deleted bigint, avg_duration_ms double precision,
        last_refresh_action text, last_refresh_status text, last_refresh_at timestamptz,
        staleness_secs double precision, stale boolean, consecutive_errors integer, schedule text, refresh_tier text,
        last_error_message text, downstream_publication text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT s.pgt_name, s.pgt_schema, s.status, s.refresh_mode, s.is_populated, s.total_refreshes,
        s.successful_refreshes, s.failed_refreshes, s.total_rows_inserted, s.total_rows_updated, s.total_rows_deleted,
        s.avg_duration_ms, s.last_action, s.last_status, s.last_refresh_at,
        extract(epoch FROM s.staleness)::double precision, COALESCE(s.stale, false), s.consecutive_errors, s.schedule,
        s.refresh_tier, i.last_error_message, NULL::text
    FROM pg_stat_stream_tables AS s JOIN stream_tables_info AS i USING (pgt_id) ORDER BY s.pgt_schema, s.pgt_name
$$;
COMMENT ON FUNCTION pgtrickle.st_refresh_stats() IS 'The state of each stream table and the sums over its refreshes.';

CREATE OR REPLACE FUNCTION pgtrickle.pgtrickle_refresh_stats()
    RETURNS TABLE (stream_table text, mode text, avg_ms double precision, p95_ms double precision,
        p99_ms double precision, refresh_count bigint, last_refresh_at timestamptz)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT h.stream_table, h.action, avg(h.duration_ms),
        percentile_cont(0.95) WITHIN GROUP (ORDER BY h.duration_ms),
        percentile_cont(0.99) WITHIN GROUP (ORDER BY h.duration_ms), count(*), max(h.finished_at)
    FROM refresh_history_info AS h WHERE h.status = 'COMPLETED' GROUP BY 1, 2 ORDER BY 1, 2
$$;
COMMENT ON FUNCTION pgtrickle.pgtrickle_refresh_stats() IS
    'How long the refreshes of each stream table took, by what they did.';

CREATE OR REPLACE FUNCTION pgtrickle.refresh_efficiency()
    RETURNS TABLE (pgt_schema text, pgt_name text, refresh_mode text, total_refreshes bigint, diff_count bigint,
        full_count bigint, avg_diff_ms double precision, avg_full_ms double precision,
        avg_change_ratio double precision, diff_speedup text, last_refresh_at text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT i.pgt_schema, i.pgt_name, i.refresh_mode, h.diffs + h.fulls, h.diffs, h.fulls, h.diff_ms, h.full_ms,
        NULL::double precision, round((h.full_ms / NULLIF(h.diff_ms, 0))::numeric, 1) || 'x', i.last_refresh_at::text
    FROM stream_tables_info AS i CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE r.action = 'DIFFERENTIAL') AS diffs,
            count(*) FILTER (WHERE r.action IN ('FULL', 'REINITIALIZE')) AS fulls,
            avg(r.duration_ms) FILTER (WHERE r.action = 'DIFFERENTIAL') AS diff_ms,
            avg(r.duration_ms) FILTER (WHERE r.action IN ('FULL', 'REINITIALIZE')) AS full_ms
        FROM refresh_history_info AS r WHERE r.pgt_id = i.pgt_id AND r.status = 'COMPLETED') AS h
    ORDER BY 1, 2
$$;
COMMENT ON FUNCTION pgtrickle.refresh_efficiency() IS
    'How long differential refreshes of each stream table took beside whole ones. avg_change_ratio is not kept.';

CREATE OR REPLACE FUNCTION pgtrickle.commit_latency_stats()
    RETURNS TABLE (pgt_schema text, pgt_name text, samples bigint, min_ms double precision, p50_ms double precision,
        p95_ms double precision, max_ms double precision, tracking_mode text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT i.pgt_schema, i.pgt_name, count(*), min(v.ms), percentile_cont(0.5) WITHIN GROUP (ORDER BY v.ms),
        percentile_cont(0.95) WITHIN GROUP (ORDER BY v.ms), max(v.ms),
        CASE WHEN bool_and(h.change_clock = 'commit') THEN 'commit' ELSE 'capture' END
    FROM stream_tables_info AS i JOIN refresh_history_info AS h ON h.pgt_id = i.pgt_id AND h.status = 'COMPLETED'
        CROSS JOIN LATERAL (
            SELECT extract(epoch FROM h.commit_to_visible)::double precision * 1000 AS ms) AS v
    WHERE v.ms IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2
$$;
COMMENT ON FUNCTION pgtrickle.commit_latency_stats() IS
    'How long after it came the oldest change of each refresh was visible. tracking_mode: commit, or capture where '
    'some were timed when they were captured, before their commit (track_commit_timestamp is off).';

CREATE OR REPLACE FUNCTION pgtrickle.metrics_summary()
    RETURNS TABLE (db_name text, total_stream_tables bigint, active_stream_tables bigint,
        suspended_stream_tables bigint, total_refreshes bigint, successful_refreshes bigint, failed_refreshes bigint,
        total_rows_processed bigint, active_workers integer, ivm_lock_parse_error_count bigint,
        holdback_probe_calls bigint, holdback_probe_cache_hits bigint, holdback_probe_avg_ms double precision,
        cleanup_backlog_count bigint, cleanup_blocked_count bigint)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT current_database()::text, count(*), count(*) FILTER (WHERE s.status = 'ACTIVE'),
        count(*) FILTER (WHERE s.status = 'SUSPENDED'), COALESCE(sum(s.total_refreshes), 0)::bigint,
        COALESCE(sum(s.successful_refreshes), 0)::bigint, COALESCE(sum(s.failed_refreshes), 0)::bigint,
        COALESCE(sum(s.total_rows_inserted + s.total_rows_updated + s.total_rows_deleted), 0)::bigint,
        refresher_runs()::integer, 0::bigint, 0::bigint, 0::bigint, NULL::double precision, 0::bigint, 0::bigint
    FROM pg_stat_stream_tables AS s
$$;
COMMENT ON FUNCTION pgtrickle.metrics_summary() IS
    'One row of sums over all stream tables. active_workers is 1 while pytrickle run leads; what only a worker '
    'within the server can count is 0 or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle.explain_refresh_mode(
        name text, search_path text DEFAULT current_setting('search_path'))
    RETURNS TABLE (configured_mode text, effective_mode text, downgrade_reason text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT i.requested_refresh_mode, COALESCE(i.effective_refresh_mode, i.refresh_mode),
        CASE WHEN i.requested_refresh_mode <> 'FULL' AND COALESCE(i.effective_refresh_mode, i.refresh_mode) = 'FULL'
            THEN COALESCE(i.full_reason, i.refresh_reason) END
    FROM stream_tables_info AS i WHERE i.pgt_id = stream_table_id(name, search_path)
$$;
COMMENT ON FUNCTION pgtrickle.explain_refresh_mode(text, text) IS
    'Which refresh mode was asked for, how the stream table was refreshed last, and why as a whole, if it was.';

CREATE OR REPLACE FUNCTION pgtrickle.sla_summary()
    RETURNS TABLE (stream_table text, p50_ms double precision, p99_ms double precision,
        freshness_lag_s double precision, error_rate double precision, error_budget_remaining double precision)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT i.stream_table,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY h.duration_ms) FILTER (WHERE h.status = 'COMPLETED'),
        percentile_cont(0.99) WITHIN GROUP (ORDER BY h.duration_ms) FILTER (WHERE h.status = 'COMPLETED'),
        extract(epoch FROM clock_timestamp() - i.data_timestamp)::double precision,
        (count(*) FILTER (WHERE h.status = 'FAILED'))::double precision
            / NULLIF(count(*) FILTER (WHERE h.status IN ('COMPLETED', 'FAILED')), 0), NULL::double precision
    FROM stream_tables_info AS i LEFT JOIN refresh_history_info AS h ON h.pgt_id = i.pgt_id
    GROUP BY i.stream_table, i.data_timestamp ORDER BY 1
$$;
COMMENT ON FUNCTION pgtrickle.sla_summary() IS
    'How long refreshes of each stream table took, how old its data is, and the share of failures. There is no budget '
    'for errors.';
