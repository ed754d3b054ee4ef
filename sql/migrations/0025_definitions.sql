-- What a stream table promises of its refreshes, and the project of definitions that owns it. Run once and never edited
-- afterwards.

ALTER TABLE pgtrickle.pgt_stream_tables
    DROP CONSTRAINT pgt_stream_tables_refresh_mode_check,
    ADD CONSTRAINT pgt_stream_tables_refresh_mode_check
        CHECK (refresh_mode IN ('AUTO', 'DIFFERENTIAL', 'DIFFERENTIAL_STRICT', 'FULL')),
    ADD COLUMN recomputation_asked boolean NOT NULL DEFAULT false,
    ADD COLUMN project text;
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.refresh_mode IS 'AUTO, DIFFERENTIAL, DIFFERENTIAL_STRICT or FULL.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.recomputation_asked IS
    'Somebody asked for the recomputation that reinitialize_reason is about, which refresh_mode DIFFERENTIAL_STRICT '
    'refuses otherwise.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.project IS
    'The project of definitions that owns it, and may alter and drop it; NULL for those created by hand.';

ALTER TABLE pgtrickle.pgt_watermark_groups ADD COLUMN project text;
COMMENT ON COLUMN pgtrickle.pgt_watermark_groups.project IS
    'The project of definitions that owns the group; NULL for those created by hand.';
ALTER TABLE pgtrickle.pgt_refresh_groups ADD COLUMN project text;
COMMENT ON COLUMN pgtrickle.pgt_refresh_groups.project IS
    'The project of definitions that owns the group; NULL for those created by hand.';
