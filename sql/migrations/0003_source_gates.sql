-- Source gates, limits on the silence of sources, and alerts. Run once, in one transaction, and never edited afterwards.
CREATE TABLE pgtrickle.pgt_source_gates (
    source_relid regclass PRIMARY KEY,
    source_name text NOT NULL,
    gated_at timestamptz NOT NULL,
    gated_by text NOT NULL,
    reason text,
    ungated_at timestamptz
);
COMMENT ON TABLE pgtrickle.pgt_source_gates IS 'Sources that are, or last were, gated for a bulk load.';
COMMENT ON COLUMN pgtrickle.pgt_source_gates.source_relid IS 'The source.';
COMMENT ON COLUMN pgtrickle.pgt_source_gates.source_name IS 'Its qualified name when it was gated.';
COMMENT ON COLUMN pgtrickle.pgt_source_gates.gated_at IS 'Since when its stream tables wait.';
COMMENT ON COLUMN pgtrickle.pgt_source_gates.gated_by IS 'Session user who gated it.';
COMMENT ON COLUMN pgtrickle.pgt_source_gates.reason IS 'Why, in the words of whoever gated it.';
COMMENT ON COLUMN pgtrickle.pgt_source_gates.ungated_at IS 'When the gate was opened; NULL: it is shut.';

CREATE TABLE pgtrickle.pgt_source_limits (
    source_relid regclass PRIMARY KEY,
    source_name text NOT NULL,
    stale_after interval CHECK (stale_after > interval '0'),
    on_stale text NOT NULL DEFAULT 'warn' CHECK (on_stale IN ('warn', 'hold')),
    idle_after interval CHECK (idle_after > interval '0'),
    CHECK (stale_after IS NOT NULL OR idle_after IS NOT NULL)
);
COMMENT ON TABLE pgtrickle.pgt_source_limits IS 'How long a source may be silent; instead of what its watermark groups say.';
COMMENT ON COLUMN pgtrickle.pgt_source_limits.source_relid IS 'The source.';
COMMENT ON COLUMN pgtrickle.pgt_source_limits.source_name IS 'Its qualified name when the limits were set.';
COMMENT ON COLUMN pgtrickle.pgt_source_limits.stale_after IS 'Not seen for longer, it is stale; NULL: as its groups say.';
COMMENT ON COLUMN pgtrickle.pgt_source_limits.on_stale IS 'warn raises an alert, hold also gates the stream tables made of it.';
COMMENT ON COLUMN pgtrickle.pgt_source_limits.idle_after IS 'Not seen for longer, it is idle; NULL: as its groups say.';

ALTER TABLE pgtrickle.pgt_watermark_groups
    ADD COLUMN stale_after interval CHECK (stale_after > interval '0'),
    ADD COLUMN on_stale text NOT NULL DEFAULT 'warn' CHECK (on_stale IN ('warn', 'hold')),
    ADD COLUMN idle_after interval CHECK (idle_after > interval '0');
COMMENT ON COLUMN pgtrickle.pgt_watermark_groups.stale_after IS 'A source not seen for longer is stale; NULL: never.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_groups.on_stale IS 'warn raises an alert, hold also gates the stream tables that heed the group.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_groups.idle_after IS 'A source not seen for longer is idle; NULL: never.';

ALTER TABLE pgtrickle.pgt_watermarks
    ADD COLUMN marked_idle_at timestamptz,
    ADD COLUMN marked_idle_by text;
COMMENT ON COLUMN pgtrickle.pgt_watermarks.marked_idle_at IS 'When the source was marked idle; the next advance ends that.';
COMMENT ON COLUMN pgtrickle.pgt_watermarks.marked_idle_by IS 'Session user who marked it.';

CREATE TABLE pgtrickle.pgt_alerts (
    alert_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    subject text NOT NULL,
    group_name text,
    since timestamptz NOT NULL,
    sentence text NOT NULL,
    opened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    closed_at timestamptz
);
CREATE UNIQUE INDEX pgt_alerts_open_idx ON pgtrickle.pgt_alerts (kind, subject, COALESCE(group_name, '')) WHERE closed_at IS NULL;
COMMENT ON TABLE pgtrickle.pgt_alerts IS 'Incidents: each is told twice on channel pgtrickle_alert, when it begins and when it ends.';
COMMENT ON COLUMN pgtrickle.pgt_alerts.alert_id IS 'Order of incidents.';
COMMENT ON COLUMN pgtrickle.pgt_alerts.kind IS 'stale, idle, gate_deadline, or what another part of pytrickle raises.';
COMMENT ON COLUMN pgtrickle.pgt_alerts.subject IS 'The source or stream table concerned.';
COMMENT ON COLUMN pgtrickle.pgt_alerts.group_name IS 'The watermark group whose limit was passed, if it was that of a group.';
COMMENT ON COLUMN pgtrickle.pgt_alerts.since IS 'Since when it is so.';
COMMENT ON COLUMN pgtrickle.pgt_alerts.sentence IS 'What happened, for people.';
COMMENT ON COLUMN pgtrickle.pgt_alerts.opened_at IS 'When it was noticed.';
COMMENT ON COLUMN pgtrickle.pgt_alerts.closed_at IS 'When its end was noticed; NULL: it lasts.';

-- Their parameters or columns changed; the new ones come with the functions.
DROP FUNCTION IF EXISTS pgtrickle.create_watermark_group(text, text[], interval, text);
DROP FUNCTION IF EXISTS pgtrickle.alter_watermark_group(text, text[], interval, text);
DROP FUNCTION IF EXISTS pgtrickle.watermark_groups();
DROP FUNCTION IF EXISTS pgtrickle.watermark_status();
DROP FUNCTION IF EXISTS pgtrickle.group_alignment();
DROP FUNCTION IF EXISTS pgtrickle.agreed_entries(integer, integer);
DROP FUNCTION IF EXISTS pgtrickle.hold_back_group(integer, integer);
DROP FUNCTION IF EXISTS pgtrickle.gating_decision(integer);
DROP FUNCTION IF EXISTS pgtrickle.gating_mode(integer);
