-- Sinks stage in a schema of their own, and know the rows of their last batch. Run once and never edited afterwards.

-- Whoever may use a schema can make objects that depend on the types of its tables, and so keep those from being dropped.
CREATE SCHEMA pgtrickle_sinks;
COMMENT ON SCHEMA pgtrickle_sinks IS 'pytrickle: staging tables of sinks.';
-- Loaders read and write the staging tables made for them, and no other: those are granted one by one.
GRANT USAGE ON SCHEMA pgtrickle_sinks TO PUBLIC;
REVOKE USAGE ON SCHEMA pgtrickle_changes FROM PUBLIC;

DO $$
DECLARE
    staging regclass;
BEGIN
    FOR staging IN SELECT oid FROM pg_class WHERE relnamespace = 'pgtrickle_changes'::regnamespace AND relkind = 'r' AND relname ~ '^sink_\d+_[0-9a-f]+$' LOOP
        EXECUTE format('DROP TABLE %s CASCADE', staging);
    END LOOP;
END
$$;

ALTER TABLE pgtrickle.pgt_sink_batches
    ADD COLUMN row_count bigint,
    ADD COLUMN row_digest numeric;
COMMENT ON COLUMN pgtrickle.pgt_sink_batches.row_count IS 'How many rows it had; NULL: not known, and not compared when it comes again.';
COMMENT ON COLUMN pgtrickle.pgt_sink_batches.row_digest IS 'The sum of the hashes of its rows, whatever their order; NULL: not known, and not compared.';

-- Its parameters changed; the new one comes with the functions, as those do whose staging tables lay elsewhere.
DROP FUNCTION IF EXISTS pgtrickle.claim_sink_batch(regclass, text, text, bigint);
DROP FUNCTION IF EXISTS pgtrickle.drop_unused_staging(text);
