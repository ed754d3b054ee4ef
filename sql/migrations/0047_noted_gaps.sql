-- From which cut on changes can be read again is known where a gap says in which transaction it was noted. Run once and
-- never edited afterwards.

ALTER TABLE pgtrickle.pgt_capture_gaps ADD COLUMN xid xid8, ADD COLUMN pos bigint;
COMMENT ON COLUMN pgtrickle.pgt_capture_gaps.xid IS 'The transaction that noted it; NULL: not known.';
COMMENT ON COLUMN pgtrickle.pgt_capture_gaps.pos IS
    'The position in that transaction after which changes can be read again; NULL: only after the transaction.';
