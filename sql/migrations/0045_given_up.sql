-- What was found out about the way that a refresh did not take. Run once and never edited afterwards.

ALTER TABLE pgtrickle.pgt_refresh_history ADD COLUMN gave_up_ms double precision, ADD COLUMN other_ms double precision;
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.gave_up_ms IS
    'After how many milliseconds the other way was given up, whole or differential, and this one taken; NULL: none was '
    'tried.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.other_ms IS
    'How many milliseconds the differential refresh that was given up would have taken, if that is less than this one '
    'took; NULL: it is not, or was not timed.';
