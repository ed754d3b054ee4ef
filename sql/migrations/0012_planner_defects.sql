-- What the planner failed on. Run once and never edited afterwards.
ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN planner_defect text;
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.planner_defect IS
    'What pytrickle failed on in the last refresh that met a defect of its own; NULL since the query is planned as it should be.';

-- It tells more; the new one comes with the functions.
DROP FUNCTION IF EXISTS pgtrickle.pgt_status();
