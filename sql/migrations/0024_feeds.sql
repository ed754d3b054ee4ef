-- Feeds: who follows the changes of a table from version to version. Run once and never edited afterwards.

CREATE TABLE pgtrickle.pgt_feeds (
    feed_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    feed_name text NOT NULL UNIQUE,
    source_relid regclass NOT NULL,
    source_name text NOT NULL,
    feed_owner text NOT NULL,
    columns_used text[] NOT NULL,
    captured_xid xid8 NOT NULL,
    captured_pos bigint NOT NULL,
    frontier pgtrickle.cut NOT NULL,
    read_version bigint,
    max_age interval CHECK (max_age > interval '0'),
    max_rows bigint CHECK (max_rows > 0),
    cut_off_at timestamptz,
    cut_off_reason text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    read_at timestamptz,
    system_identifier bigint NOT NULL
);
CREATE INDEX pgt_feeds_source_idx ON pgtrickle.pgt_feeds (source_relid);
COMMENT ON TABLE pgtrickle.pgt_feeds IS 'Who follows the changes of a source or stream table, and how far they were read.';
COMMENT ON COLUMN pgtrickle.pgt_feeds.feed_id IS 'Number of the feed.';
COMMENT ON COLUMN pgtrickle.pgt_feeds.feed_name IS 'Its name.';
COMMENT ON COLUMN pgtrickle.pgt_feeds.source_relid IS 'The source or stream table that it follows.';
COMMENT ON COLUMN pgtrickle.pgt_feeds.source_name IS 'Its qualified name when the feed was created.';
COMMENT ON COLUMN pgtrickle.pgt_feeds.feed_owner IS 'Role that says how far the feed was read.';
COMMENT ON COLUMN pgtrickle.pgt_feeds.columns_used IS 'Columns that it follows: all that there were when it was created.';
COMMENT ON COLUMN pgtrickle.pgt_feeds.captured_xid IS 'Transaction since which all of them are captured ...';
COMMENT ON COLUMN pgtrickle.pgt_feeds.captured_pos IS '... from this position on.';
COMMENT ON COLUMN pgtrickle.pgt_feeds.frontier IS 'The cut of the version that was read last: changes beyond it are kept.';
COMMENT ON COLUMN pgtrickle.pgt_feeds.read_version IS 'That version; NULL: none was read yet.';
COMMENT ON COLUMN pgtrickle.pgt_feeds.max_age IS 'It is cut off if a version waits longer than this to be read; NULL: never.';
COMMENT ON COLUMN pgtrickle.pgt_feeds.max_rows IS 'It is cut off if more changes than this wait to be read; NULL: never.';
COMMENT ON COLUMN pgtrickle.pgt_feeds.cut_off_at IS 'When it was cut off; NULL: it is not.';
COMMENT ON COLUMN pgtrickle.pgt_feeds.cut_off_reason IS 'Why.';
COMMENT ON COLUMN pgtrickle.pgt_feeds.created_at IS 'When it was created.';
COMMENT ON COLUMN pgtrickle.pgt_feeds.read_at IS 'When somebody said last how far it was read.';
COMMENT ON COLUMN pgtrickle.pgt_feeds.system_identifier IS 'Cluster in which its frontier is valid.';

CREATE TABLE pgtrickle.pgt_versions (
    version bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_relid regclass NOT NULL,
    watermark timestamptz,
    batch bigint,
    is_first boolean NOT NULL,
    cut pgtrickle.cut NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX pgt_versions_source_idx ON pgtrickle.pgt_versions (source_relid, version);
COMMENT ON TABLE pgtrickle.pgt_versions IS
    'What stream tables that are followed showed after each refresh; the versions of a source are its watermark history.';
COMMENT ON COLUMN pgtrickle.pgt_versions.version IS 'Number of the version; later ones are higher.';
COMMENT ON COLUMN pgtrickle.pgt_versions.source_relid IS 'The stream table.';
COMMENT ON COLUMN pgtrickle.pgt_versions.watermark IS 'It was complete through this event time, ...';
COMMENT ON COLUMN pgtrickle.pgt_versions.batch IS '... and through this batch, ...';
COMMENT ON COLUMN pgtrickle.pgt_versions.is_first IS '... neither of which an earlier version had reached.';
COMMENT ON COLUMN pgtrickle.pgt_versions.cut IS 'The changes of the stream table that lead to what it showed.';
COMMENT ON COLUMN pgtrickle.pgt_versions.recorded_at IS 'When the refresh was committed.';

ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN followed boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.followed IS 'Whether each refresh records a version, for a feed.';
