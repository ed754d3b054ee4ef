-- The state of every stream table.

CREATE OR REPLACE FUNCTION pgtrickle_private.verdicts()
    RETURNS TABLE (pgt_id bigint, gating text, decision text, reason text, last_action text, effective_schedule text,
        due boolean, engine text, last_engine text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT t.pgt_id, g.gating, g.decision, g.reason, (
            SELECT h.action FROM pgt_refresh_history AS h WHERE h.pgt_id = t.pgt_id ORDER BY h.refresh_id DESC LIMIT 1),
        effective_schedule(t), is_due(t), t.engine, (
            SELECT h.engine FROM pgt_refresh_history AS h
            WHERE h.pgt_id = t.pgt_id AND h.engine IS NOT NULL ORDER BY h.refresh_id DESC LIMIT 1)
    FROM pgt_stream_tables AS t JOIN gating_decisions(NULL) AS g USING (pgt_id)
$$;
COMMENT ON FUNCTION pgtrickle_private.verdicts() IS
    'Of each stream table whether it may refresh now and why, what the last refresh did, and when it is due.';

-- Compiling would take longer than reading: the planner expects much of what is asked only where there is an error.
CREATE OR REPLACE FUNCTION pgtrickle.pgt_status()
    RETURNS TABLE (name text, status text, refresh_mode text, is_populated boolean, consecutive_errors integer,
        schedule text, data_timestamp timestamptz, staleness interval, scc_id integer,
        pgt_id bigint, stream_table text, watermark_gating text, decision text, reason text,
        effective_watermark timestamptz, last_refresh_at timestamptz, last_action text, last_error text, tier text,
        paused boolean, next_due_at timestamptz, consecutive_failures integer, retry_at timestamptz,
        fuse_blown_at timestamptz, effective_schedule text, due boolean, effective_batch bigint, planner_defect text,
        engine text, last_engine text, frozen_before timestamptz, late_changes bigint)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET jit = off
AS $$
    SELECT i.pgt_schema || '.' || i.pgt_name, i.status, i.requested_refresh_mode, i.is_populated, i.consecutive_errors,
        COALESCE(i.schedule, 'calculated'), i.data_timestamp, clock_timestamp() - i.data_timestamp, i.scc_id,
        v.pgt_id, i.stream_table, v.gating, v.decision, v.reason,
        i.effective_watermark, i.last_refresh_at, v.last_action, i.last_error_message, i.refresh_tier,
        i.paused, i.next_due_at, i.consecutive_errors, i.retry_at,
        i.fuse_blown_at, v.effective_schedule, v.due, i.effective_batch, i.planner_defect,
        v.engine, v.last_engine, i.frozen_before, i.late_changes
    FROM stream_tables_info AS i JOIN verdicts() AS v ON v.pgt_id = i.pgt_id ORDER BY i.stream_table
$$;
COMMENT ON FUNCTION pgtrickle.pgt_status() IS
    'Every stream table: how fresh it is, whether it may refresh now and why, and what pytrickle itself failed on '
    '(planner_defect), if it did. engine says who is to compute it, last_engine who did. status is SUSPENDED also '
    'while it is paused; refresh_mode is what was asked for. Rows before frozen_before never change again; '
    'late_changes counts what came too late for them, or for closed windows.';
