-- Room for the rows that every refresh updates. Run once and never edited afterwards.

-- No index of these tables has a column that a refresh changes. While there is room on its page, an updated row needs no
-- entry in them, and is cleared away by the next reader instead of by a vacuum.
ALTER TABLE pgtrickle.pgt_stream_tables SET (fillfactor = 40);
ALTER TABLE pgtrickle.pgt_dependencies SET (fillfactor = 40);
ALTER TABLE pgtrickle.pgt_change_tracking SET (fillfactor = 40);
ALTER TABLE pgtrickle.pgt_watermarks SET (fillfactor = 40);

-- Whether any stream table retains watermarks is asked for every buffer that is cleaned.
CREATE INDEX pgt_stream_tables_retention_idx ON pgtrickle.pgt_stream_tables (pgt_id)
    WHERE watermark_retention IS NOT NULL;

-- Who is in a cycle, and who holds back, is asked whenever a stream table is created.
CREATE INDEX pgt_stream_tables_cycle_idx ON pgtrickle.pgt_stream_tables (pgt_id)
    WHERE allow_circular OR scc_id IS NOT NULL;
CREATE INDEX pgt_stream_tables_hold_back_idx ON pgtrickle.pgt_stream_tables (pgt_id)
    WHERE watermark_gating = 'hold_back';
