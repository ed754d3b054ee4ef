-- What is found out about the way that a refresh did not take, whichever that is. Run once and never edited afterwards.

COMMENT ON COLUMN pgtrickle.pgt_refresh_history.gave_up_ms IS
    'After how many milliseconds the other way was given up, whole or differential; NULL: it was not tried, or without '
    'the groups that the query keeps, which says nothing of the next refresh.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.other_ms IS
    'How many milliseconds the other way would have taken, as far as it was timed after this one; a differential '
    'refresh only if it would have taken less. NULL: it was not timed.';
