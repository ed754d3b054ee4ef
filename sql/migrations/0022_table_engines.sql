-- Who computes a stream table. Run once and never edited afterwards.

ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN engine text NOT NULL DEFAULT 'auto'
    CHECK (engine IN ('auto', 'spark', 'postgres'));
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.engine IS
    'Who computes it: spark, postgres, or with auto whoever the refresher chooses.';

-- Their columns and parameters changed; the new ones come with the functions.
DROP FUNCTION IF EXISTS pgtrickle.pgt_status();
DROP FUNCTION IF EXISTS pgtrickle_private.verdicts();
DO $$
DECLARE
    changed regprocedure;
BEGIN
    FOR changed IN
        SELECT p.oid FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = 'pgtrickle'::regnamespace
            AND p.proname IN ('create_stream_table', 'alter_stream_table')
    LOOP
        EXECUTE format('DROP FUNCTION %s', changed);
    END LOOP;
END
$$;
