-- What is not noted about the way that a refresh did not take. Run once and never edited afterwards.

COMMENT ON COLUMN pgtrickle.pgt_refresh_history.gave_up_ms IS
    'After how many milliseconds the other way was given up, whole or differential, and this one taken; NULL: it was '
    'not tried, or without the groups that the query keeps, which says nothing of the next refresh.';
