-- Who calls, who may speak for a source, and what capture looked like when it was installed. Run once and never edited afterwards.

-- What a role asks for enters here, and so PostgreSQL itself says who asks: nobody may write the column caller.
CREATE UNLOGGED TABLE pgtrickle.pgt_calls (
    call_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    caller name NOT NULL DEFAULT current_user,
    call text,
    source regclass,
    arguments jsonb,
    result jsonb
);
COMMENT ON TABLE pgtrickle.pgt_calls IS 'What loaders ask for: a trigger does it as the row comes, and no row stays.';
COMMENT ON COLUMN pgtrickle.pgt_calls.call_id IS 'Number of the call.';
COMMENT ON COLUMN pgtrickle.pgt_calls.caller IS 'The role that asks, as PostgreSQL knows it.';
COMMENT ON COLUMN pgtrickle.pgt_calls.call IS 'The function that was called.';
COMMENT ON COLUMN pgtrickle.pgt_calls.source IS 'The source that it is about.';
COMMENT ON COLUMN pgtrickle.pgt_calls.arguments IS 'Its further arguments.';
COMMENT ON COLUMN pgtrickle.pgt_calls.result IS 'What it returns; NULL if nothing.';

CREATE TABLE pgtrickle.pgt_loaders (
    source_relid regclass NOT NULL,
    loader text NOT NULL,
    source_name text NOT NULL,
    granted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    granted_by text NOT NULL,
    PRIMARY KEY (source_relid, loader)
);
COMMENT ON TABLE pgtrickle.pgt_loaders IS 'Roles that may speak for a source although they may not insert into it. Written by pgtrickle.grant_loader().';
COMMENT ON COLUMN pgtrickle.pgt_loaders.source_relid IS 'The source.';
COMMENT ON COLUMN pgtrickle.pgt_loaders.loader IS 'The role.';
COMMENT ON COLUMN pgtrickle.pgt_loaders.source_name IS 'The qualified name of the source when that was granted.';
COMMENT ON COLUMN pgtrickle.pgt_loaders.granted_at IS 'When it was granted.';
COMMENT ON COLUMN pgtrickle.pgt_loaders.granted_by IS 'The role that granted it.';

ALTER TABLE pgtrickle.pgt_sink_batches ADD COLUMN loader text;
COMMENT ON COLUMN pgtrickle.pgt_sink_batches.loader IS 'The role whose sink it is; NULL: it is not known, and the next one that uses it.';
UPDATE pgtrickle.pgt_sink_batches SET loader = committed_by;

ALTER TABLE pgtrickle.pgt_late_rows ADD COLUMN replay_xid xid8, ADD COLUMN replay_time timestamptz;
CREATE INDEX pgt_late_rows_replay_idx ON pgtrickle.pgt_late_rows (source_relid, replay_xid, replay_time) WHERE replay_xid IS NOT NULL;
COMMENT ON COLUMN pgtrickle.pgt_late_rows.replay_xid IS 'The transaction in which it may pass the limit, to be put back.';
COMMENT ON COLUMN pgtrickle.pgt_late_rows.replay_time IS 'The event time by which it is known again then.';

CREATE TABLE pgtrickle.pgt_moved_rows (
    event_time_id integer NOT NULL,
    moved_by xid8 NOT NULL,
    PRIMARY KEY (moved_by, event_time_id)
);
COMMENT ON TABLE pgtrickle.pgt_moved_rows IS 'Transactions that delete rows of a partitioned source: such a row may be inserted into another partition, whatever its event time.';
COMMENT ON COLUMN pgtrickle.pgt_moved_rows.event_time_id IS 'The declared event time of the source.';
COMMENT ON COLUMN pgtrickle.pgt_moved_rows.moved_by IS 'The transaction.';

CREATE TABLE pgtrickle.pgt_leader ();
COMMENT ON TABLE pgtrickle.pgt_leader IS 'The refresher that leads holds a lock on this table, which nobody else may lock.';

ALTER TABLE pgtrickle.pgt_change_tracking ADD COLUMN trigger_stamp text;
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.trigger_stamp IS 'Differs once a capture trigger was altered, be it as it was again.';

ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN last_sqlstate text;
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.last_sqlstate IS 'SQLSTATE or class of that error, for those who may not see what it says.';
ALTER TABLE pgtrickle.pgt_refresh_history ADD COLUMN sqlstate text;
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.sqlstate IS 'SQLSTATE or class of that error, for those who may not see what it says.';
-- Reasons are for everybody; what errors say may quote rows.
UPDATE pgtrickle.pgt_refresh_history SET reason = regexp_replace(reason, '^(the differential refresh failed):.*$', '\1') WHERE reason LIKE 'the differential refresh failed:%';
UPDATE pgtrickle.pgt_stream_tables SET reinitialize_reason = 'the differential refresh failed: earlier' WHERE reinitialize_reason LIKE 'the differential refresh failed:%';

-- Their parameters changed, or nothing calls them any more; the new ones come with the functions.
DROP FUNCTION IF EXISTS pgtrickle.calling_role();
DROP FUNCTION IF EXISTS pgtrickle.check_loader(regclass, text);
DROP FUNCTION IF EXISTS pgtrickle.check_advance(regclass, pgtrickle.progress);
DROP FUNCTION IF EXISTS pgtrickle.lock_watermark(regclass);
DROP FUNCTION IF EXISTS pgtrickle.advance(regclass, pgtrickle.progress);
DROP FUNCTION IF EXISTS pgtrickle.sink_number(regclass, text);
DROP FUNCTION IF EXISTS pgtrickle.too_late_setting(pgtrickle.pgt_event_times);
DROP FUNCTION IF EXISTS pgtrickle.caller_reads(regclass);
DROP FUNCTION IF EXISTS pgtrickle.caller_reads_all(regclass);
DROP FUNCTION IF EXISTS pgtrickle.check_reads_all(regclass, text);
DROP FUNCTION IF EXISTS pgtrickle.check_replay(regclass, text);
DROP FUNCTION IF EXISTS pgtrickle.claim_late_rows(regclass, bigint[]);
DROP FUNCTION IF EXISTS pgtrickle.settle_late_rows(regclass, bigint[], text);
