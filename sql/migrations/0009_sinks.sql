-- Sinks: which batch of a stream was committed last. Run once, in one transaction, and never edited afterwards.
CREATE TABLE pgtrickle.pgt_sink_batches (
    sink_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_relid regclass NOT NULL,
    sink_name text NOT NULL,
    query_id text,
    batch_id bigint,
    committed_at timestamptz,
    committed_by text,
    UNIQUE (source_relid, sink_name)
);
COMMENT ON TABLE pgtrickle.pgt_sink_batches IS 'The last batch that each sink committed: it is what makes a batch that comes again be left out.';
COMMENT ON COLUMN pgtrickle.pgt_sink_batches.sink_id IS 'Number of the sink; its staging tables are named by it.';
COMMENT ON COLUMN pgtrickle.pgt_sink_batches.source_relid IS 'The table that the sink fills.';
COMMENT ON COLUMN pgtrickle.pgt_sink_batches.sink_name IS 'Name of the sink, among those of its table.';
COMMENT ON COLUMN pgtrickle.pgt_sink_batches.query_id IS 'The streaming query, as its checkpoint knows it; NULL: not known.';
COMMENT ON COLUMN pgtrickle.pgt_sink_batches.batch_id IS 'The last batch committed; NULL: none yet.';
COMMENT ON COLUMN pgtrickle.pgt_sink_batches.committed_at IS 'When it was.';
COMMENT ON COLUMN pgtrickle.pgt_sink_batches.committed_by IS 'Session user who did.';

-- Loaders read and write the staging tables made for them, and no other: those are granted one by one.
GRANT USAGE ON SCHEMA pgtrickle_changes TO PUBLIC;
