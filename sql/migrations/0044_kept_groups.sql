-- The groups within a query that are kept beside its stream table. Run once and never edited afterwards.

ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN kept_groups text;
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.kept_groups IS
    'For which query, and at which version of the frontier, the tables pgtrickle_state.groups<n>_<pgt_id> hold the groups '
    'within it; NULL where they do not.';
