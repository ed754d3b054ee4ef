-- Stream tables that read each other. Run once, in one transaction, and never edited afterwards.
ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN allow_circular boolean NOT NULL DEFAULT false,
    ADD COLUMN max_fixpoint_iterations integer NOT NULL DEFAULT 100 CHECK (max_fixpoint_iterations > 0);
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.allow_circular IS 'Whether it may read itself, through stream tables that all allow it.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.max_fixpoint_iterations IS 'A cycle that it is in fails after so many rounds without a fixed point.';

-- Their parameters changed; the new ones come with the functions.
DROP FUNCTION IF EXISTS pgtrickle.create_stream_table(
    text, text, text, text, text, boolean, text, text, interval, interval, text, text, bigint, text);
DROP FUNCTION IF EXISTS pgtrickle.alter_stream_table(
    text, text, text, text, boolean, text, text, interval, interval, text, text, bigint, text[], text);
DROP FUNCTION IF EXISTS pgtrickle.drop_dependents(integer, boolean);
