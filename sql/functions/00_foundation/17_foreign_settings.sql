-- Settings of the extension pg_trickle. PostgreSQL takes any name with a dot, so only we can say what becomes of them.

CREATE OR REPLACE FUNCTION pgtrickle_private.foreign_setting(name text) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT NULLIF(btrim(current_setting('pg_trickle.' || name, true)), '')
$$;
COMMENT ON FUNCTION pgtrickle_private.foreign_setting(text) IS
    'What this session has set for the extension pg_trickle, or NULL.';

-- The defaults are those of the extension: who sets one to its default asks for nothing.
CREATE OR REPLACE FUNCTION pgtrickle_private.unheeded_settings() RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT 'pg_trickle.' || s.name
    FROM (SELECT split_part(word, '=', 1) AS name, split_part(word, '=', 2) AS usual
          FROM unnest(string_to_array(
            'adaptive_batch_coalescing=true adaptive_merge_strategy=false agg_diff_cardinality_threshold=1000 '
            'aggregate_fast_path=true algebraic_drift_reset_cycles=0 analyze_before_delta=true auto_backoff=true '
            'auto_index=true backpressure_consecutive_limit=3 block_source_ddl=true buffer_alert_threshold=1000000 '
            'buffer_partitioning=off cdc_capture_mode=discard cdc_mode=trigger cdc_paused=false '
            'cdc_trigger_mode=statement change_buffer_durability=logged change_buffer_schema=pgtrickle_changes '
            'citus_st_lock_lease_ms=60000 citus_worker_retry_ticks=5 cleanup_use_truncate=true columnar_backend=none '
            'commit_timestamp_tracking=off compact_threshold=100000 connection_pooler_mode=off '
            'cost_cache_capacity=256 cost_model_safety_margin=0.8 deep_join_l0_scan_threshold=4 '
            'default_schedule_seconds=1 delta_amplification_threshold=100 delta_enable_nestloop=true '
            'delta_work_mem=0 delta_work_mem_cap_mb=256 diff_output_format=split differential_max_change_ratio=0.15 '
            'enable_change_buffer_fanout=true enable_fused_refresh=true enable_trace_propagation=false '
            'enable_vector_agg=false enabled=true enforce_backpressure=false event_driven_wake=true '
            'explain_annotations=false force_full_refresh=false foreign_table_polling=false '
            'frontier_holdback_mode=xmin frontier_holdback_probe_cache_ms=250 frontier_holdback_warn_seconds=60 '
            'fused_refresh_max_delta_rows=500000 history_prune_interval_seconds=60 history_retention_days=90 '
            'invalidation_ring_capacity=1024 ivm_recursive_max_depth=100 ivm_topk_max_limit=1000 ivm_use_enr=false '
            'lag_aware_scheduling=false log_delta_sql=false log_format=text log_merge_sql=false '
            'matview_polling=false max_buffer_rows=1000000 max_change_buffer_alert_rows=0 '
            'max_concurrent_refreshes=4 max_consecutive_errors=3 max_control_targets=64 max_delta_estimate_rows=0 '
            'max_diff_ctes=1000 max_dynamic_refresh_workers=4 max_grouping_set_branches=64 max_parallel_workers=0 '
            'max_parse_depth=64 max_parse_nodes=100000 memory_budget_mb=256 merge_join_strategy=auto '
            'merge_planner_hints=true merge_seqscan_threshold=0.001 merge_strategy=auto '
            'merge_strategy_threshold=0.01 merge_work_mem_mb=64 metrics_port=0 metrics_request_timeout_ms=5000 '
            'min_schedule_seconds=1 notify_coalesce_ms=250 online_schema_evolution=false parallel_refresh_mode=on '
            'part3_max_scan_count=5 per_database_worker_quota=0 pipeline_batch_size=4096 planner_aggressive=true '
            'prediction_min_samples=5 prediction_ratio=1.5 prediction_window=60 publication_lag_warn_bytes=0 '
            'refresh_strategy=auto reindex_drift_threshold=0.20 schedule_alert_cooldown_seconds=300 '
            'schedule_recommendation_min_samples=20 scheduler_interval_ms=1000 self_heal_lock_timeout=true '
            'self_heal_oom=true self_monitoring_auto_apply=off sla_window_hours=24 slot_lag_critical_threshold_mb=1024 '
            'slot_lag_warning_threshold_mb=100 spill_consecutive_limit=3 spill_threshold_blocks=0 '
            'template_cache=true template_cache_max_age_hours=168 template_cache_max_bytes=0 '
            'template_cache_max_entries=0 temporal_stream_tables=false tick_watermark_enabled=true '
            'tiered_scheduling=true unlogged_buffers=false use_prepared_statements=true '
            'use_sqlstate_classification=true user_triggers=auto validate_delta_invariants=false '
            'volatile_function_policy=reject wake_debounce_ms=10 wal_max_changes_per_poll=10000 '
            'wal_max_lag_bytes=65536 wal_transition_timeout=300 warn_join_sources=6 warn_write_path_overhead_us=0 '
            'worker_pool_size=0', ' ')) AS word) AS s
    WHERE CASE lower(foreign_setting(s.name)) WHEN 'on' THEN 'true' WHEN 'yes' THEN 'true' WHEN 'off' THEN 'false'
        WHEN 'no' THEN 'false' ELSE lower(foreign_setting(s.name)) END
        <> CASE s.usual WHEN 'on' THEN 'true' WHEN 'off' THEN 'false' ELSE s.usual END
    ORDER BY 1
$$;
COMMENT ON FUNCTION pgtrickle_private.unheeded_settings() IS
    'Which settings of the extension pg_trickle this session has set, and nothing here goes by.';

CREATE OR REPLACE FUNCTION pgtrickle_private.tell_of_settings() RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    names CONSTANT text := (SELECT string_agg(name, ', ') FROM unheeded_settings() AS name);
BEGIN
    IF names IS NOT NULL THEN
        RAISE NOTICE 'set for the extension pg_trickle, and without effect here: %', names
            USING HINT = 'docs/reference/settings.md says what takes their place.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.tell_of_settings() IS
    'A notice that names the settings of the extension pg_trickle that nothing here goes by, where there are any.';
