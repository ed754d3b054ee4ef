-- What everybody may know of stream tables and of their refreshes. Views, as within one current_user is whoever reads
-- it: what errors say is shown to those only who may read every row of the sources.

CREATE OR REPLACE FUNCTION pgtrickle_private.period_of(schedule text) RETURNS interval
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE WHEN schedule <> 'calculated' AND cron_expression(schedule) IS NULL THEN schedule::interval END
$$;
COMMENT ON FUNCTION pgtrickle_private.period_of(text) IS
    'The interval that a schedule is; NULL for calculated and for cron.';

CREATE OR REPLACE VIEW pgtrickle.stream_tables_info AS
SELECT t.pgt_id, t.pgt_relid::oid AS pgt_relid, t.pgt_name, t.pgt_schema, t.defining_query,
    t.original_query, NULLIF(t.schedule, 'calculated') AS schedule,
    CASE WHEN t.refresh_mode = 'FULL' OR t.full_reason IS NOT NULL THEN 'FULL' ELSE 'DIFFERENTIAL' END AS refresh_mode,
    t.requested_refresh_mode, CASE WHEN t.paused THEN 'SUSPENDED' ELSE t.status END AS status, t.is_populated,
    t.data_timestamp, t.frontier, NULL::jsonb AS tentative_frontier, t.last_refresh_at, t.consecutive_errors,
    t.needs_reinit, (
        SELECT h.duration_ms FROM pgtrickle.pgt_refresh_history AS h
        WHERE h.pgt_id = t.pgt_id AND h.status = 'COMPLETED' AND h.action IN ('FULL', 'REINITIALIZE')
        ORDER BY h.refresh_id DESC LIMIT 1) AS last_full_ms,
    t.diamond_consistency, t.diamond_schedule_policy, EXISTS (
        SELECT FROM pgtrickle.pgt_dependencies AS d JOIN pg_catalog.pg_class AS c ON c.oid = d.source_relid
        WHERE d.pgt_id = t.pgt_id AND c.relkind IN ('r', 'p') AND d.source_type <> 'STREAM_TABLE'
            AND NOT EXISTS (SELECT FROM pg_catalog.pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary)
        ) AS has_keyless_source,
    t.requested_cdc_mode, t.is_append_only, t.scc_id, t.last_fixpoint_iterations, t.max_differential_joins,
    t.max_delta_fraction, t.pooler_compatibility_mode, t.refresh_tier, t.effective_refresh_mode, t.fuse_mode,
    t.fuse_state, t.fuse_ceiling, t.fuse_sensitivity, t.blown_at, t.blow_reason, CASE
        WHEN t.last_error IS NULL THEN NULL
        WHEN t.pgt_id IN (SELECT r.pgt_id FROM pgtrickle.pgt_readable_tables AS r) THEN t.last_error
        ELSE pgtrickle_private.without_values(t.last_error, t.last_sqlstate) END AS last_error_message,
    t.last_error_at, t.last_error_code, t.last_error_retryable, t.freshness_deadline_ms, t.target_freshness_mode,
    t.refresh_reason, t.refresh_reason_detail, t.st_partition_key, t.in_shadow_build, t.shadow_table_name,
    t.st_placement, t.temporal_mode, t.storage_backend, t.storage_fillfactor, t.post_refresh_action,
    t.reindex_drift_threshold, t.created_at, t.updated_at, t.defining_search_path, t.orchestration_mode,
    pg_catalog.clock_timestamp() - t.last_refresh_at AS staleness,
    pg_catalog.clock_timestamp() - t.last_refresh_at > pgtrickle_private.period_of(t.schedule) AS stale, (
        -- The outermost query comes last in what PostgreSQL stores of a view.
        SELECT pg_catalog.substring(w.ev_action::text, '.*:limitCount (\S)') = '{' FROM pg_catalog.pg_rewrite AS w
        WHERE w.ev_class = t.view_relid) AS is_topk,
    pg_catalog.format('%I.%I', t.pgt_schema, t.pgt_name) AS stream_table, t.schedule_timezone, t.paused,
    t.next_due_at, t.retry_at, t.fuse_blown_at, t.effective_watermark, t.effective_batch, t.output_mode,
    t.reinitialize_reason, t.last_skip_reason, t.full_reason, CASE
        WHEN t.planner_defect IS NULL THEN NULL
        WHEN t.pgt_id IN (SELECT r.pgt_id FROM pgtrickle.pgt_readable_tables AS r) THEN t.planner_defect
        ELSE pgtrickle_private.without_values(t.planner_defect, 'planner defect') END AS planner_defect,
    t.frozen_after, t.frozen_by, t.frozen_before, (
        SELECT count(*) FROM pgtrickle.pgt_late_changes AS l WHERE l.pgt_id = t.pgt_id) AS late_changes,
    t.frontier_version
FROM pgtrickle.pgt_stream_tables AS t;
COMMENT ON VIEW pgtrickle.stream_tables_info IS
    'Every stream table, with the columns of pg_trickle first. schedule is NULL where it is calculated, refresh_mode '
    'what comes of the mode that was asked for, status SUSPENDED also while it is paused, stale whether the last '
    'refresh is longer ago than its schedule says (NULL without an interval). late_changes counts what the ledger has '
    'of it, for rows before frozen_before and for closed windows; frontier_version counts refreshes.';

CREATE OR REPLACE VIEW pgtrickle.refresh_history_info AS
SELECT h.refresh_id, h.pgt_id, pg_catalog.format('%I.%I', t.pgt_schema, t.pgt_name) AS stream_table, h.action, h.status,
    h.initiated_by, h.reason, h.started_at, h.finished_at, h.duration_ms, h.delta_rows, h.rows_inserted,
    h.rows_updated, h.rows_deleted, h.effective_watermark, h.effective_batch, h.data_timestamp, CASE
        WHEN h.error IS NULL THEN NULL
        WHEN h.pgt_id IN (SELECT r.pgt_id FROM pgtrickle.pgt_readable_tables AS r) THEN h.error
        ELSE pgtrickle_private.without_values(h.error, h.sqlstate) END AS error,
    h.sqlstate, h.fixpoint_iteration, CASE
        WHEN h.error IS NULL THEN h.error_message
        WHEN h.pgt_id IN (SELECT r.pgt_id FROM pgtrickle.pgt_readable_tables AS r) THEN h.error
        ELSE pgtrickle_private.without_values(h.error, h.sqlstate) END AS error_message,
    h.engine, h.finished_at - h.oldest_change_at AS commit_to_visible, h.change_clock, h.oldest_change_at,
    h.newest_change_at, h.phases, h.staged_bytes,
    (h.rows_inserted + h.rows_deleted)::double precision / NULLIF(h.delta_rows, 0) AS amplification
FROM pgtrickle.pgt_refresh_history AS h JOIN pgtrickle.pgt_stream_tables AS t USING (pgt_id);
COMMENT ON VIEW pgtrickle.refresh_history_info IS
    'What each refresh did, with errors as the reader may see them.';
