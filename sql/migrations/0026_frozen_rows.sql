-- Rows of a stream table that stay as they are once they are old. Run once and never edited afterwards.

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN frozen_after interval,
    ADD COLUMN frozen_by text,
    ADD COLUMN frozen_before timestamptz,
    ADD CONSTRAINT pgt_stream_tables_frozen_check
        CHECK ((frozen_after IS NULL) = (frozen_by IS NULL) AND (frozen_after IS NOT NULL OR frozen_before IS NULL)),
    DROP CONSTRAINT pgt_stream_tables_window_end_check,
    ADD CONSTRAINT pgt_stream_tables_window_end_check CHECK (output_mode <> 'append' OR window_end IS NOT NULL);
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.frozen_after IS
    'Rows that are older than this below the effective watermark never change again; NULL: all rows may change.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.frozen_by IS
    'The column that says how old a row is, where frozen_after is set.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.frozen_before IS
    'Rows whose event time is before this are frozen; NULL: none are yet.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.window_end IS
    'The column that says when the window of a row ends: under append, or where frozen_after goes by it.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.earlier_query_through IS
    'Under append, windows that end by then were emitted by an earlier query and stay as they are; with frozen_after, '
    'rows from before then were frozen under an earlier query. NULL where there was none.';

COMMENT ON TABLE pgtrickle.pgt_late_changes IS
    'Changes that came after their window was closed, or after the rows that they concern were frozen: the stream '
    'table does not show them.';
COMMENT ON COLUMN pgtrickle.pgt_late_changes.pgt_id IS
    'The stream table, whose output mode is append or which has frozen_after.';
COMMENT ON COLUMN pgtrickle.pgt_late_changes.window_end IS
    'The end of the closed window, or the event time of the frozen row.';
COMMENT ON COLUMN pgtrickle.pgt_late_changes.closed_through IS
    'The effective watermark through which windows had been closed, or the moment before which rows were frozen.';
COMMENT ON COLUMN pgtrickle.pgt_late_changes.change IS
    'The row that came or went, or the group that it belongs to. Of frozen rows: the row, each value as text.';

-- Their columns and parameters changed; the new ones come with the functions.
DROP FUNCTION IF EXISTS pgtrickle.pgt_status();
DO $$
DECLARE
    changed regprocedure;
BEGIN
    FOR changed IN
        SELECT p.oid FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = 'pgtrickle'::regnamespace
            AND p.proname IN ('create_stream_table', 'alter_stream_table', 'create_and_load_stream_table')
    LOOP
        EXECUTE format('DROP ROUTINE %s', changed);
    END LOOP;
END
$$;
