-- Windows that an earlier query emitted, and why none are closed. Run once and never edited afterwards.
ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN earlier_query_through timestamptz;
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.earlier_query_through IS
    'Under append, windows that end by then were emitted by an earlier query and stay as they are; NULL where there was none.';

-- It tells more; the new one comes with the functions.
DROP FUNCTION IF EXISTS pgtrickle.windows();
