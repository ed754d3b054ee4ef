-- How long the change history for reading as of earlier watermarks is kept. Run once and never edited afterwards.
ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN watermark_retention interval CHECK (watermark_retention > interval '0');
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.watermark_retention IS
    'Every watermark that was the newest of a source within this time can be read back; NULL: only what is kept anyway.';
