-- The number of a stream table is a bigint, as in the extension pg_trickle; what a source is used by, and whose it was.
-- Run once and never edited afterwards.

-- What shows the number, or takes it, comes anew with the functions.
DO $$
DECLARE
    views CONSTANT text := (
        SELECT string_agg(c.oid::regclass::text, ', ') FROM pg_catalog.pg_class AS c
        WHERE c.relnamespace = 'pgtrickle'::regnamespace AND c.relkind = 'v');
    changed regprocedure;
    altered text;
    detail text;
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
    FOREACH altered IN ARRAY ARRAY['pgt_stream_tables', 'pgt_dependencies', 'pgt_refresh_history',
        'pgt_refresh_requests', 'pgt_late_changes']
    LOOP
        EXECUTE format('ALTER TABLE pgtrickle.%I ALTER COLUMN pgt_id TYPE bigint', altered);
    END LOOP;
EXCEPTION WHEN dependent_objects_still_exist OR feature_not_supported THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RAISE EXCEPTION 'something of yours is made of the catalog: %', detail
        USING ERRCODE = '2BP01', CONSTRAINT = 'dependents_exist', HINT = 'Drop it, install, and create it again.';
END
$$;

ALTER TABLE pgtrickle.pgt_change_tracking ADD COLUMN tracked_by_pgt_ids bigint[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.tracked_by_pgt_ids IS 'The stream tables for which it is captured.';
UPDATE pgtrickle.pgt_change_tracking AS k
SET tracked_by_pgt_ids = ARRAY(
    SELECT d.pgt_id FROM pgtrickle.pgt_dependencies AS d
    WHERE d.source_relid = k.source_relid AND d.source_type <> 'UNCAPTURED' ORDER BY d.pgt_id);

-- Whoever may create tables could otherwise take the place of one that somebody else dropped.
ALTER TABLE pgtrickle.pgt_watermark_groups ADD COLUMN source_owners text[];
COMMENT ON COLUMN pgtrickle.pgt_watermark_groups.source_owners IS
    'The owners of its sources, also of those that were dropped since.';
UPDATE pgtrickle.pgt_watermark_groups AS g
SET source_owners = ARRAY(
    SELECT pg_get_userbyid(c.relowner)::text FROM unnest(g.sources) WITH ORDINALITY AS s (source, place)
    LEFT JOIN pg_catalog.pg_class AS c ON c.oid = s.source ORDER BY s.place);
