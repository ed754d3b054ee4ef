-- Watermarks that were wrong: what makes one doubtful, and those that were taken back. Run once and never edited
-- afterwards.

CREATE TABLE pgtrickle.pgt_watermark_checks (
    source_relid regclass PRIMARY KEY,
    source_name text NOT NULL,
    max_ahead interval CHECK (max_ahead >= interval '0'),
    on_doubt text NOT NULL CHECK (on_doubt IN ('warn', 'error'))
);
COMMENT ON TABLE pgtrickle.pgt_watermark_checks IS
    'What makes a new watermark of a source doubtful, where that is not the default; '
    'see pgtrickle.set_watermark_checks().';
COMMENT ON COLUMN pgtrickle.pgt_watermark_checks.source_relid IS 'The source.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_checks.source_name IS 'Its qualified name when that was set.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_checks.max_ahead IS
    'A watermark further in the future than this is doubtful; NULL: none is.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_checks.on_doubt IS
    'A doubtful watermark is taken with a warning (warn), or refused (error).';

CREATE TABLE pgtrickle.pgt_withdrawn_watermarks (
    withdrawal_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_relid regclass NOT NULL,
    source_name text NOT NULL,
    version bigint,
    watermark timestamptz,
    batch bigint,
    advanced_at timestamptz NOT NULL,
    advanced_by text,
    lowered_to pgtrickle.progress NOT NULL,
    withdrawn_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    withdrawn_by text NOT NULL,
    CHECK (num_nonnulls(watermark, batch) >= 1)
);
CREATE INDEX pgt_withdrawn_watermarks_source_idx ON pgtrickle.pgt_withdrawn_watermarks (source_relid);
COMMENT ON TABLE pgtrickle.pgt_withdrawn_watermarks IS
    'Watermarks that were taken back by pgtrickle.reset_watermark(), who did it, and when; and the versions that '
    'feeds of stream tables had of them.';
COMMENT ON COLUMN pgtrickle.pgt_withdrawn_watermarks.withdrawal_id IS 'Number of the entry.';
COMMENT ON COLUMN pgtrickle.pgt_withdrawn_watermarks.source_relid IS
    'The source, or a stream table that was followed and claimed such a watermark.';
COMMENT ON COLUMN pgtrickle.pgt_withdrawn_watermarks.source_name IS 'Its qualified name at that time.';
COMMENT ON COLUMN pgtrickle.pgt_withdrawn_watermarks.version IS
    'The version that readers of its changes knew; NULL: there was none.';
COMMENT ON COLUMN pgtrickle.pgt_withdrawn_watermarks.watermark IS 'It was wrongly said to be complete through this event time, ...';
COMMENT ON COLUMN pgtrickle.pgt_withdrawn_watermarks.batch IS '... or through the batch of this number.';
COMMENT ON COLUMN pgtrickle.pgt_withdrawn_watermarks.advanced_at IS 'When that was said.';
COMMENT ON COLUMN pgtrickle.pgt_withdrawn_watermarks.advanced_by IS 'The role that said it; NULL for a stream table.';
COMMENT ON COLUMN pgtrickle.pgt_withdrawn_watermarks.lowered_to IS 'The watermark of the source that took its place.';
COMMENT ON COLUMN pgtrickle.pgt_withdrawn_watermarks.withdrawn_at IS 'When it was taken back.';
COMMENT ON COLUMN pgtrickle.pgt_withdrawn_watermarks.withdrawn_by IS 'The role that took it back.';

-- Their parameters change: the new ones take a watermark too.
DROP FUNCTION IF EXISTS pgtrickle.reset_watermark(regclass);
DROP FUNCTION IF EXISTS pgtrickle.reset_watermark(text, text);
