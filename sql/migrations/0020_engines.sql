-- Who computes refreshes: Spark or PostgreSQL. Run once and never edited afterwards.

ALTER TABLE pgtrickle.pgt_refresh_history ADD COLUMN engine text;
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.engine IS
    'Who computed it: spark or postgres; NULL: there was nothing to compute.';

-- Their columns changed, the new ones come with the functions.
DROP FUNCTION IF EXISTS pgtrickle.refresh_history(text, integer, text);
