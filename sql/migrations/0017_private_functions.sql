-- What users do not call leaves the schema that they look into. Run once and never edited afterwards.
CREATE SCHEMA pgtrickle_private;
COMMENT ON SCHEMA pgtrickle_private IS 'pytrickle: functions that the others call; they may change with any version.';
-- Functions that run with the rights of their caller call these; which of them he may call is granted one by one.
GRANT USAGE ON SCHEMA pgtrickle_private TO PUBLIC;

DO $$
DECLARE
    called_by_users CONSTANT text[] := ARRAY[
        'adopt_cluster', 'advance_watermark', 'alert', 'alerts', 'alter_stream_table', 'alter_watermark_group',
        'assert_fresh', 'bootstrap_gate_status', 'capture_problem', 'claim_sink_batch', 'clean_change_buffers',
        'covers', 'create_refresh_group', 'create_sink_staging', 'create_stream_table', 'create_watermark_group',
        'current_cut', 'cut_covers', 'dag', 'dependency_tree', 'discard_late_rows', 'drop_refresh_group',
        'drop_sink', 'drop_sink_staging', 'drop_stream_table', 'drop_watermark_group', 'event_times', 'gate_source',
        'gating_decision', 'grant_loader', 'late_changes', 'late_rows', 'mark_idle', 'pause_stream_table',
        'pgt_status', 'raise_alerts', 'refresh_groups', 'refresh_history', 'refresh_stream_table', 'repair_capture',
        'replay_late_rows', 'reset_fuse', 'reset_watermark', 'resume_stream_table', 'revoke_loader',
        'set_event_time', 'set_source_limits', 'settle_grants', 'source_gates', 'staged_event_time', 'staged_rows',
        'trim_history', 'ungate_source', 'unset_event_time', 'wait_for', 'watermark_groups', 'watermark_history',
        'watermark_metrics', 'watermark_of', 'watermark_status', 'watermarks', 'windows'
    ];
    private CONSTANT regprocedure[] := ARRAY(
        SELECT p.oid::regprocedure FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = 'pgtrickle'::regnamespace AND NOT p.proname = ANY (called_by_users) ORDER BY p.oid);
    names CONSTANT text := (SELECT string_agg(DISTINCT p.proname, '|') FROM pg_catalog.pg_proc AS p WHERE p.oid = ANY (private::oid[]));
    path CONSTANT text := '''pg_catalog'', ''pgtrickle'', ';
    made regprocedure;
    called regprocedure;
BEGIN
    -- Views, triggers and columns know a function by its number, so they keep it.
    FOREACH made IN ARRAY private LOOP
        EXECUTE format('ALTER ROUTINE %s SET SCHEMA pgtrickle_private', made);
    END LOOP;
    -- Trigger functions that were generated know it by its name.
    FOR made IN SELECT p.oid FROM pg_catalog.pg_proc AS p WHERE p.pronamespace = 'pgtrickle_changes'::regnamespace ORDER BY p.oid LOOP
        BEGIN
            EXECUTE replace(regexp_replace(pg_get_functiondef(made), format('\mpgtrickle\.(%s)(?=\()', names), 'pgtrickle_private.\1', 'g'),
                            path, path || '''pgtrickle_private'', ');
        EXCEPTION WHEN insufficient_privilege THEN
            -- It belongs to a member of the owner: until it is handed over and repaired, it finds copies under the old names.
            FOR called IN
                SELECT p.oid FROM pg_catalog.pg_proc AS p
                WHERE p.oid = ANY (private::oid[]) AND pg_get_functiondef(made) ~ format('\mpgtrickle\.%s\(', p.proname)
            LOOP
                EXECUTE replace(replace(pg_get_functiondef(called), 'FUNCTION pgtrickle_private.', 'FUNCTION pgtrickle.'),
                                path, path || '''pgtrickle_private'', ');
                EXECUTE format('COMMENT ON FUNCTION %s IS %L', replace(called::text, 'pgtrickle_private.', 'pgtrickle.'),
                               'A copy for trigger functions that a member of the owner made.');
            END LOOP;
        END;
    END LOOP;
END
$$;
