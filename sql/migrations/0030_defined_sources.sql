-- The project of definitions that owns what is said of a source. Run once and never edited afterwards.

ALTER TABLE pgtrickle.pgt_source_limits ADD COLUMN project text;
COMMENT ON COLUMN pgtrickle.pgt_source_limits.project IS
    'The project of definitions that owns the limits; NULL for those set by hand.';
ALTER TABLE pgtrickle.pgt_event_times ADD COLUMN project text;
COMMENT ON COLUMN pgtrickle.pgt_event_times.project IS
    'The project of definitions that owns the declaration; NULL for those made by hand.';
