-- In which run of the server versions were numbered. Run once and never edited afterwards.

COMMENT ON SEQUENCE pgtrickle.pgt_timeline IS
    'The start of the server in microseconds, and the timeline added to it, when versions got their last numbers; 0: not '
    'known. In a later run they are numbered anew.';

DO $$
DECLARE
    started CONSTANT bigint := (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint;
    timeline bigint := 0;
BEGIN
    BEGIN
        timeline := ('x' || left(pg_walfile_name('0/0'), 8))::bit(32)::bigint;
    EXCEPTION WHEN OTHERS THEN NULL;
    END;
    IF (SELECT t.last_value FROM pgtrickle.pgt_timeline AS t) IN (0, timeline) THEN
        PERFORM setval('pgtrickle.pgt_timeline', started + timeline);
    END IF;
END
$$;
