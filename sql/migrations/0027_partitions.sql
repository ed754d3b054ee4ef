-- How far each partition of a source is complete, and windows that close when nothing comes any more. Run once and never
-- edited afterwards.

CREATE TABLE pgtrickle.pgt_partitioned_sources (
    source_relid regclass PRIMARY KEY,
    idle_timeout interval CHECK (idle_timeout > interval '0'),
    judged_at timestamptz NOT NULL
);
COMMENT ON TABLE pgtrickle.pgt_partitioned_sources IS
    'Sources whose watermark is the least over their partitions. Written by pgtrickle.advance_partitions().';
COMMENT ON COLUMN pgtrickle.pgt_partitioned_sources.source_relid IS 'The source.';
COMMENT ON COLUMN pgtrickle.pgt_partitioned_sources.idle_timeout IS
    'After so long a silence its last loader left partitions out; NULL: it waits for each of them for ever.';
COMMENT ON COLUMN pgtrickle.pgt_partitioned_sources.judged_at IS
    'When that was judged last, by the clock that its loader goes by.';

CREATE TABLE pgtrickle.pgt_source_partitions (
    source_relid regclass NOT NULL REFERENCES pgtrickle.pgt_partitioned_sources ON UPDATE CASCADE ON DELETE CASCADE,
    partition_name text NOT NULL,
    watermark timestamptz,
    silent_since timestamptz NOT NULL,
    PRIMARY KEY (source_relid, partition_name)
);
COMMENT ON TABLE pgtrickle.pgt_source_partitions IS
    'The partitions of a source, such as those of a topic, its shards or files, and how far each is complete.';
COMMENT ON COLUMN pgtrickle.pgt_source_partitions.source_relid IS 'The source.';
COMMENT ON COLUMN pgtrickle.pgt_source_partitions.partition_name IS 'Name of the partition.';
COMMENT ON COLUMN pgtrickle.pgt_source_partitions.watermark IS
    'It is complete through this event time; NULL: nothing is known of it yet; infinity: it gets no more rows.';
COMMENT ON COLUMN pgtrickle.pgt_source_partitions.silent_since IS
    'Since when its silence counts: when something of it was loaded last, or loading went on after a pause.';

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN close_after_idle interval CHECK (close_after_idle > interval '0'),
    ADD CONSTRAINT pgt_stream_tables_close_after_idle_check1
        CHECK (close_after_idle IS NULL OR output_mode = 'append');
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.close_after_idle IS
    'Under append, after so long without anything from its sources windows close by the clock; NULL: never.';
ALTER TABLE pgtrickle.pgt_dependencies ADD COLUMN changed_at timestamptz;
COMMENT ON COLUMN pgtrickle.pgt_dependencies.changed_at IS
    'When a refresh took in changes of the source last; NULL: none did since this is noted.';

-- Their parameters or columns changed; the new ones come with the functions.
DROP FUNCTION IF EXISTS pgtrickle.windows();
DROP FUNCTION IF EXISTS pgtrickle.create_sink_staging(regclass, text, text[]);
DO $$
DECLARE
    changed regprocedure;
BEGIN
    FOR changed IN
        SELECT p.oid FROM pg_catalog.pg_proc AS p
        WHERE (p.pronamespace, p.proname) IN (
            ('pgtrickle'::regnamespace, 'create_stream_table'), ('pgtrickle'::regnamespace, 'alter_stream_table'),
            ('pgtrickle_private'::regnamespace, 'make_sink_staging'))
    LOOP
        EXECUTE format('DROP FUNCTION %s', changed);
    END LOOP;
END
$$;
