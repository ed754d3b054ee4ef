-- The number of a stream table is a bigint, as in the extension pg_trickle. Run once and never edited afterwards.

-- What shows the number, or takes it, comes anew with the functions.
DO $$
DECLARE
    views CONSTANT text := (
        SELECT string_agg(c.oid::regclass::text, ', ') FROM pg_catalog.pg_class AS c
        WHERE c.relnamespace = 'pgtrickle'::regnamespace AND c.relkind = 'v');
    changed regprocedure;
BEGIN
    IF views IS NOT NULL THEN
        EXECUTE 'DROP VIEW ' || views;
    END IF;
    FOR changed IN
        SELECT p.oid FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace IN ('pgtrickle'::regnamespace, 'pgtrickle_private'::regnamespace) AND p.proname IN (
            'adopt_definition', 'adopt_query', 'agreed_entries', 'agreement', 'alter_from', 'as_of_cuts',
            'ask_refresher', 'awaited_moments', 'base_readings', 'base_sources', 'can_read',
            'changed_definitions', 'check_cycle', 'check_windows_close', 'create_from',
            'create_or_replace_stream_table', 'create_query_view', 'create_stream_table',
            'create_stream_table_batch', 'create_stream_table_cost_optimized',
            'create_stream_table_fast_append_only', 'create_stream_table_if_not_exists',
            'create_stream_table_realtime', 'cycle_members', 'cycle_path', 'definition_json',
            'definition_text', 'direct_sources', 'downstream_tables', 'drop_alone', 'drop_or_give_up',
            'drop_staging', 'drop_with_dependents', 'effective_progress', 'existing_stream_table',
            'file_request', 'filled_at', 'frontier_caps', 'gate_group', 'gating_decision', 'gating_groups',
            'gating_scope', 'groups_decision', 'held_below', 'hold_back_group', 'kinds_without',
            'known_kinds', 'known_stream_table', 'lacks_changes', 'left_behind', 'mark_reinitialize',
            'missing_entry', 'missing_right', 'other_tolerance', 'overlapping_groups', 'own_locks',
            'pgt_status', 'planner_facts', 'reach', 'readable_stream_table', 'record_full_reason',
            'record_source', 'record_sources', 'refresh_or_file', 'refuse_dependents', 'refuse_late',
            'refuse_stale', 'refuse_vain_wait', 'replace_from', 'replace_query_view', 'request_key',
            'set_query_aside', 'shown_through', 'stay', 'stream_table_id', 'stream_table_relation',
            'take_orchestration', 'tell_of_policies', 'tell_of_unseen_rows', 'try_set_query_aside',
            'upstream_tables', 'verdicts', 'waiting_requests', 'warn_of_no_group', 'why_behind',
            'why_not_wait')
    LOOP
        EXECUTE format('DROP ROUTINE %s', changed);
    END LOOP;
END
$$;

ALTER TABLE pgtrickle.pgt_stream_tables ALTER COLUMN pgt_id TYPE bigint;
ALTER TABLE pgtrickle.pgt_dependencies ALTER COLUMN pgt_id TYPE bigint;
ALTER TABLE pgtrickle.pgt_refresh_history ALTER COLUMN pgt_id TYPE bigint;
ALTER TABLE pgtrickle.pgt_refresh_requests ALTER COLUMN pgt_id TYPE bigint;
ALTER TABLE pgtrickle.pgt_late_changes ALTER COLUMN pgt_id TYPE bigint;
