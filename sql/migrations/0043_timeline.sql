-- On which timeline versions were numbered. Run once and never edited afterwards.

CREATE SEQUENCE pgtrickle.pgt_timeline AS bigint MINVALUE 0 START WITH 0;
COMMENT ON SEQUENCE pgtrickle.pgt_timeline IS
    'The timeline on which versions got their last numbers; 0: not known. On a later one, after a promotion or a recovery '
    'to a point in time, they are numbered anew.';

DO $$
BEGIN
    PERFORM setval('pgtrickle.pgt_timeline', ('x' || left(pg_walfile_name('0/0'), 8))::bit(32)::bigint);
EXCEPTION WHEN OTHERS THEN NULL;
END
$$;
