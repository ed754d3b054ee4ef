-- Windows that an earlier query emitted, and why none are closed. Run once and never edited afterwards.
ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN earlier_query_through timestamptz;
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.earlier_query_through IS
    'Under append, windows that end by then were emitted by an earlier query and stay as they are; NULL where there was none.';
COMMENT ON COLUMN pgtrickle.pgt_late_changes.weight IS
    'How many rows of the window came (above zero) or went (below zero); zero where rows only changed. '
    'Of a group that differed when everything was computed anew, 1 if its row came, -1 if it went.';

-- It tells more; the new one comes with the functions.
DROP FUNCTION IF EXISTS pgtrickle.windows();
