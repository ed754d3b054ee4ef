"""The statements that read stream tables as a refresh needs them.

In a database whose texts may be any bytes, what is no UTF-8 is replaced. To ask in every other one would take as long
as reading all the rest.
"""

STREAM_TABLES = """
SELECT s.pgt_id, s.pgt_relid::oid::bigint AS relid,
    c.oid IS NOT NULL AS exists,
    {readable}(format('%%I.%%I', s.pgt_schema, s.pgt_name)) AS stored_name,
    CASE WHEN c.oid IS NOT NULL THEN {readable}(format('%%I.%%I', n.nspname, c.relname))
        ELSE s.pgt_relid::oid::text END AS name, s.refresh_mode,
    s.status, {readable}(s.session_settings::text)::jsonb AS session_settings,
    s.time_dependent, s.frontier_version, s.effective_watermark, s.effective_batch,
    {readable}(s.reinitialize_reason) AS reinitialize_reason,
    {readable}(s.last_skip_reason) AS last_skip_reason,
    {readable}(s.last_error) AS last_error, s.gated_since, s.diamond_consistency,
    s.diamond_schedule_policy, s.fuse_ceiling, s.fuse_blown_at,
    s.max_fixpoint_iterations, s.view_stamp, s.output_mode,
    {readable}(CASE WHEN s.output_mode = 'append' THEN s.window_end END) AS window_end,
    coalesce(s.statement_timeout, %(statement_timeout)s) AS statement_timeout, s.engine,
    s.earlier_query_through, {readable}(s.planner_defect) AS planner_defect, s.recomputation_asked,
    s.kept_groups,
    {readable}(s.frozen_by) AS frozen_by, to_jsonb(s.frozen_before) #>> '{{}}' AS frozen_before,
    s.schedule <> 'calculated' AS timed, pgtrickle_private.is_due(s, %(poll_interval)s) AS due,
    {readable}(pgtrickle_private.halted(s)) AS halted,
    (
        SELECT coalesce(jsonb_agg(jsonb_build_object(
            'relid', d.source_relid::oid::bigint, 'name', {readable}(d.source_name),
            'kind', d.source_type, 'frontier', to_jsonb(d.frontier), 'buffer', t.buffer) ORDER BY d.source_relid), '[]')
        FROM pgtrickle.pgt_dependencies AS d
            LEFT JOIN pgtrickle.pgt_change_tracking AS t
                ON t.source_relid = d.source_relid AND d.source_type <> 'UNCAPTURED'
        WHERE d.pgt_id = s.pgt_id
    ) AS dependencies,
    g.about, g.gating, g.decision, {readable}(g.reason) AS reason,
    {readable}(g.waiting_for) AS waiting_for, g.decided_watermark, g.caps, g.deadline_passed,
    g.decided_batch, g.let_through
FROM pgtrickle.pgt_stream_tables AS s
    LEFT JOIN (pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace) ON c.oid = s.pgt_relid
    JOIN pgtrickle_private.gating_decisions({some}) AS g
    (about, gating, decision, reason, waiting_for, decided_watermark, caps, deadline_passed, decided_batch, let_through)
    ON g.about = s.pgt_id
WHERE {only}
ORDER BY s.pgt_id
"""
READABLE = {False: "", True: "pgtrickle_private.readable_text"}
# By whether texts may be any bytes.
ALL = {
    any_bytes: STREAM_TABLES.format(readable=readable, some="%(pgt_ids)s::bigint[]", only="true")
    for any_bytes, readable in READABLE.items()
}
# After most refreshes one is read again. PostgreSQL does not see its number while it plans: or else it would plan the
# statement anew for each one, which takes longer than reading it.
ONE = {
    any_bytes: "WITH given AS MATERIALIZED (SELECT %(pgt_id)s::bigint AS number)"
    + STREAM_TABLES.format(
        readable=readable,
        some="(SELECT ARRAY[number] FROM given)",
        only="s.pgt_id = (SELECT number FROM given)",
    )
    for any_bytes, readable in READABLE.items()
}
