-- Output modes, and what came too late for closed windows. Run once and never edited afterwards.
ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN output_mode text NOT NULL DEFAULT 'update' CHECK (output_mode IN ('update', 'append', 'complete')),
    ADD COLUMN window_end text,
    ADD CONSTRAINT pgt_stream_tables_window_end_check CHECK ((output_mode = 'append') = (window_end IS NOT NULL));
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.output_mode IS
    'update: rows change as their sources do; append: a row is shown once, when its window is closed; complete: computed as a whole every time.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.window_end IS 'Under append, the column that says when the window of a row ends.';

CREATE TABLE pgtrickle.pgt_late_changes (
    late_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pgt_id integer NOT NULL REFERENCES pgtrickle.pgt_stream_tables ON DELETE CASCADE,
    window_end timestamptz NOT NULL,
    closed_through timestamptz NOT NULL,
    weight bigint NOT NULL,
    change jsonb NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX pgt_late_changes_window_idx ON pgtrickle.pgt_late_changes (pgt_id, window_end);
COMMENT ON TABLE pgtrickle.pgt_late_changes IS 'Changes that came after their window was closed: the stream table does not show them.';
COMMENT ON COLUMN pgtrickle.pgt_late_changes.late_id IS 'Number in order of recording.';
COMMENT ON COLUMN pgtrickle.pgt_late_changes.pgt_id IS 'The stream table, whose output mode is append.';
COMMENT ON COLUMN pgtrickle.pgt_late_changes.window_end IS 'The end of the closed window.';
COMMENT ON COLUMN pgtrickle.pgt_late_changes.closed_through IS 'The effective watermark through which windows had been closed.';
COMMENT ON COLUMN pgtrickle.pgt_late_changes.weight IS 'How many rows of the window came (above zero) or went (below zero); zero where rows only changed.';
COMMENT ON COLUMN pgtrickle.pgt_late_changes.change IS 'The row that came or went, or the group that it belongs to.';
COMMENT ON COLUMN pgtrickle.pgt_late_changes.recorded_at IS 'When the refresh met it.';

-- Their parameters changed; the new ones come with the functions.
DROP FUNCTION IF EXISTS pgtrickle.create_stream_table(
    text, text, text, text, text, boolean, text, text, interval, interval, text, text, bigint, boolean, integer, bigint, text);
DROP FUNCTION IF EXISTS pgtrickle.alter_stream_table(
    text, text, text, text, boolean, text, text, interval, interval, text, text, bigint, boolean, integer, text, bigint, text[], text);
