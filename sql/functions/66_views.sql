-- Views below a defining query may be replaced behind our back: their new meaning is taken in before anything is refreshed.

CREATE OR REPLACE FUNCTION pgtrickle.adopt_view(p_pgt_id integer, p_view regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    dropped regclass;
BEGIN
    PERFORM refuse_volatile(p_view);
    PERFORM check_source_rights(p_view);
    PERFORM record_sources(p_pgt_id);
    FOR dropped IN
        DELETE FROM pgt_dependencies AS d
        WHERE d.pgt_id = p_pgt_id AND NOT EXISTS (SELECT FROM query_sources(p_view) AS s WHERE s.source_relid = d.source_relid)
        RETURNING d.source_relid
    LOOP
        PERFORM trim_capture(dropped);
    END LOOP;
    UPDATE pgt_stream_tables AS t
    SET full_reason = pgtrickle.full_reason(p_view), time_dependent = time_dependence(p_view) IS NOT NULL
    WHERE t.pgt_id = p_pgt_id;
    PERFORM check_hold_back();
    PERFORM mark_reinitialize(p_pgt_id, 'a view that it reads was replaced');
END
$$;
COMMENT ON FUNCTION pgtrickle.adopt_view(integer, regclass) IS 'Records what the defining query reads now that a view below it was replaced, and has the stream table reinitialized.';

CREATE OR REPLACE FUNCTION pgtrickle.adopt_replaced_views() RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    stale record;
    adopted integer := 0;
BEGIN
    FOR stale IN
        SELECT t.pgt_id, t.view_relid FROM pgt_stream_tables AS t JOIN pg_class AS c ON c.oid = t.view_relid
        WHERE t.view_stamp IS DISTINCT FROM pgtrickle.view_stamp(t.view_relid) ORDER BY t.pgt_id
    LOOP
        PERFORM adopt_view(stale.pgt_id, stale.view_relid);
        adopted := adopted + 1;
    END LOOP;
    RETURN adopted;
END
$$;
COMMENT ON FUNCTION pgtrickle.adopt_replaced_views() IS
    'Takes in views that were replaced below defining queries; called at the start of every tick. Error 42P17 if a stream table would read itself now, '
    '0A000 or 42501 if the query would have been refused. Returns the number of stream tables concerned.';
