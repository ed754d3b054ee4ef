-- Watermarks that count batches, beside those of event time. Run once, in one transaction, and never edited afterwards.
CREATE TYPE pgtrickle.progress AS (watermark timestamptz, batch bigint);
COMMENT ON TYPE pgtrickle.progress IS
    'How far something is complete. A source goes by one kind, the other is NULL; a stream table may have one of each.';
COMMENT ON COLUMN pgtrickle.progress.watermark IS 'Through this event time.';
COMMENT ON COLUMN pgtrickle.progress.batch IS 'Through the batch of this number.';

CREATE TYPE pgtrickle.distance AS (span interval, batches numeric);
COMMENT ON TYPE pgtrickle.distance IS 'How far two watermarks of one kind are apart; the other kind is NULL.';
COMMENT ON COLUMN pgtrickle.distance.span IS 'Between event times.';
COMMENT ON COLUMN pgtrickle.distance.batches IS 'Between batch numbers; more than fits into a bigint, if need be.';

ALTER TABLE pgtrickle.pgt_watermarks
    ALTER COLUMN watermark DROP NOT NULL,
    ADD COLUMN batch bigint,
    ADD CONSTRAINT pgt_watermarks_kind_check CHECK (num_nonnulls(watermark, batch) = 1);
COMMENT ON COLUMN pgtrickle.pgt_watermarks.watermark IS 'The source is complete through this event time; NULL: it goes by batch numbers.';
COMMENT ON COLUMN pgtrickle.pgt_watermarks.batch IS 'The source is complete through the batch of this number; NULL: it goes by event time.';

ALTER TABLE pgtrickle.pgt_watermark_history
    ALTER COLUMN watermark DROP NOT NULL,
    ADD COLUMN batch bigint,
    ADD COLUMN progress pgtrickle.progress GENERATED ALWAYS AS (ROW(watermark, batch)::pgtrickle.progress) STORED,
    ADD CONSTRAINT pgt_watermark_history_kind_check CHECK (num_nonnulls(watermark, batch) = 1);
CREATE UNIQUE INDEX pgt_watermark_history_progress_idx ON pgtrickle.pgt_watermark_history (source_relid, progress);
COMMENT ON COLUMN pgtrickle.pgt_watermark_history.watermark IS 'The source is complete through this event time (NULL: it goes by batch numbers) ...';
COMMENT ON COLUMN pgtrickle.pgt_watermark_history.batch IS '... or through the batch of this number ...';
COMMENT ON COLUMN pgtrickle.pgt_watermark_history.progress IS 'Either of the two, in the order of the advances.';

ALTER TABLE pgtrickle.pgt_watermark_groups
    ALTER COLUMN tolerance DROP NOT NULL,
    ALTER COLUMN tolerance DROP DEFAULT,
    ADD COLUMN batch_tolerance bigint CHECK (batch_tolerance >= 0),
    ADD CONSTRAINT pgt_watermark_groups_kind_check CHECK (num_nonnulls(tolerance, batch_tolerance) = 1);
COMMENT ON COLUMN pgtrickle.pgt_watermark_groups.tolerance IS
    'Largest distance between the watermarks that still counts as agreement; NULL: the group goes by batch numbers.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_groups.batch_tolerance IS 'The same as a number of batches; NULL: the group goes by event time.';

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN batch_tolerance bigint CHECK (batch_tolerance >= 0),
    ADD COLUMN effective_batch bigint;
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.watermark_tolerance IS
    'Instead of the tolerance of each watermark group that goes by event time; NULL: the group''s own.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.batch_tolerance IS
    'Instead of the tolerance of each watermark group that goes by batch numbers; NULL: the group''s own.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.effective_watermark IS
    'The contents are complete through this event time, as far as groups by event time say; never moves back.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.effective_batch IS
    'The contents are complete through the batch of this number, as far as groups by batch numbers say; never moves back.';

ALTER TABLE pgtrickle.pgt_refresh_history ADD COLUMN effective_batch bigint;
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.effective_batch IS 'Effective batch number after the refresh.';

-- Their parameters or columns changed, whatever they were before; the new ones come with the functions.
DO $$
DECLARE
    changed regprocedure;
BEGIN
    FOR changed IN
        SELECT p.oid FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = 'pgtrickle'::regnamespace AND p.proname IN (
            'agreed_entries', 'agreed_time', 'alter_stream_table', 'alter_watermark_group', 'bootstrap_gate_status', 'check_advance',
            'check_tolerance', 'check_wait', 'create_stream_table', 'create_watermark_group', 'dag', 'gate_group', 'gating_decision',
            'group_alignment', 'group_members', 'groups_decision', 'hold_back_group', 'latest_entry', 'lock_watermark', 'missing_entry', 'pgt_status',
            'refresh_history', 'refuse_late', 'refuse_vain_wait', 'watermark_groups', 'watermark_history', 'watermark_status',
            'watermarks', 'why_behind')
    LOOP
        EXECUTE format('DROP FUNCTION %s', changed);
    END LOOP;
END
$$;
