-- Schedules, tiers, atomic units, failures and fuses. Run once, in one transaction, and never edited afterwards.
ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN schedule_timezone text NOT NULL DEFAULT current_setting('TimeZone'),
    ADD COLUMN tier text NOT NULL DEFAULT 'hot' CHECK (tier IN ('hot', 'warm', 'cold', 'frozen')),
    ADD COLUMN paused boolean NOT NULL DEFAULT false,
    ADD COLUMN next_due_at timestamptz,
    ADD COLUMN watermark_tolerance interval CHECK (watermark_tolerance >= interval '0'),
    ADD COLUMN gate_deadline interval CHECK (gate_deadline > interval '0'),
    ADD COLUMN gated_since timestamptz,
    ADD COLUMN diamond_consistency text NOT NULL DEFAULT 'atomic' CHECK (diamond_consistency IN ('atomic', 'none')),
    ADD COLUMN diamond_schedule_policy text NOT NULL DEFAULT 'fastest' CHECK (diamond_schedule_policy IN ('fastest', 'slowest')),
    ADD COLUMN fuse_ceiling bigint CHECK (fuse_ceiling > 0),
    ADD COLUMN fuse_blown_at timestamptz,
    ADD COLUMN consecutive_failures integer NOT NULL DEFAULT 0,
    ADD COLUMN retry_at timestamptz,
    DROP CONSTRAINT pgt_stream_tables_status_check,
    ADD CONSTRAINT pgt_stream_tables_status_check CHECK (status IN ('INITIALIZING', 'ACTIVE', 'ERROR', 'SUSPENDED'));
UPDATE pgtrickle.pgt_stream_tables SET schedule_timezone = session_settings ->> 'TimeZone';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.status IS 'INITIALIZING until first filled, ACTIVE, ERROR after a failed refresh, or SUSPENDED after too many.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.schedule IS '''calculated'' (when a source changed), an interval, or a cron expression.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.schedule_timezone IS 'Time zone of a cron schedule.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.tier IS 'hot, warm, cold or frozen: by which factor its schedule is stretched.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.paused IS 'Whether ticks leave it out until it is resumed.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.next_due_at IS 'When a cron schedule is due next, as the refresher worked out; NULL: not worked out yet.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.watermark_tolerance IS 'Instead of the tolerance of each watermark group; NULL: the group''s own.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.gate_deadline IS 'After so long behind a shut gate it refreshes anyway; NULL: never.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.gated_since IS 'When its gate shut, while it is due; NULL: it is not behind a gate.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.diamond_consistency IS 'atomic: what it reads through two ways is committed together with it; none: one by one.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.diamond_schedule_policy IS 'An atomic diamond is due when its fastest or when its slowest member is.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.fuse_ceiling IS 'A delta of more rows is held for a decision; NULL: no fuse.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.fuse_blown_at IS 'Since when a delta is held by the fuse.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.consecutive_failures IS 'Failed refreshes since the last good one.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.retry_at IS 'Not tried again before, after a failure.';

CREATE TABLE pgtrickle.pgt_refresh_groups (
    group_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    group_name text NOT NULL UNIQUE,
    members regclass[] NOT NULL CHECK (cardinality(members) > 1),
    isolation text NOT NULL DEFAULT 'repeatable_read' CHECK (isolation IN ('repeatable_read', 'read_committed')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE pgtrickle.pgt_refresh_groups IS 'Stream tables that are refreshed together.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_groups.group_id IS 'Number of the group.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_groups.group_name IS 'Name of the group.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_groups.members IS 'Its stream tables.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_groups.isolation IS 'repeatable_read: committed in one transaction; read_committed: one by one, but all are due when one is.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_groups.created_at IS 'When it was created.';

DROP FUNCTION IF EXISTS pgtrickle.create_stream_table(text, text, text, text, text, boolean, text);
DROP FUNCTION IF EXISTS pgtrickle.alter_stream_table(text, text, text, text, boolean, text);
DROP FUNCTION IF EXISTS pgtrickle.check_options(text, text, text, boolean);
DROP FUNCTION IF EXISTS pgtrickle.pgt_status();
