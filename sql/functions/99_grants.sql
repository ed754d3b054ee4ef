-- Who may call what: loaders advance, anybody looks, the rest belongs to the installing role.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA pgtrickle FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    pgtrickle.advance_watermark(regclass, timestamptz),
    pgtrickle.advance_watermark(regclass, bigint),
    pgtrickle.advance_watermark(regclass, text),
    pgtrickle.watermarks(),
    pgtrickle.watermark_history(regclass),
    pgtrickle.watermark_groups(),
    pgtrickle.watermark_status(),
    pgtrickle.pgt_status(),
    pgtrickle.refresh_groups(),
    pgtrickle.refresh_history(text, integer, text),
    pgtrickle.dependency_tree(),
    pgtrickle.dag(),
    pgtrickle.wait_for(text, timestamptz, interval, text),
    pgtrickle.wait_for(text, bigint, interval, text),
    pgtrickle.wait_for(text, text, interval, text),
    pgtrickle.assert_fresh(text, interval, text),
    pgtrickle.gate_source(regclass, text),
    pgtrickle.ungate_source(regclass),
    pgtrickle.mark_idle(regclass),
    pgtrickle.create_sink_staging(regclass, text, text[]),
    pgtrickle.drop_sink_staging(regclass, text),
    pgtrickle.claim_sink_batch(regclass, text, text, bigint),
    pgtrickle.source_gates(),
    pgtrickle.event_times(),
    pgtrickle.late_rows(regclass, text, integer),
    pgtrickle.claim_late_rows(regclass, bigint[]),
    pgtrickle.replay_late_rows(regclass, bigint[], boolean, text),
    pgtrickle.discard_late_rows(regclass, bigint[]),
    pgtrickle.watermark_metrics(),
    pgtrickle.bootstrap_gate_status(),
    pgtrickle.alerts(integer),
    pgtrickle.late_changes(text, integer, text),
    pgtrickle.windows()
TO PUBLIC;
-- Whoever calls these through the Python client has the versions compared first.
GRANT SELECT ON pgtrickle.pgt_schema_version TO PUBLIC;
