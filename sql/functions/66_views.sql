-- Views and functions below a defining query may be replaced behind our back: their new meaning is taken in before
-- anything is refreshed.

CREATE OR REPLACE FUNCTION pgtrickle.adopt_definition(p_pgt_id integer) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    view CONSTANT regclass := (SELECT t.view_relid FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id);
    dropped regclass;
BEGIN
    PERFORM refuse_volatile(view);
    PERFORM check_source_rights(view);
    PERFORM record_sources(p_pgt_id);
    FOR dropped IN
        DELETE FROM pgt_dependencies AS d
        WHERE d.pgt_id = p_pgt_id AND NOT EXISTS (SELECT FROM query_sources(view) AS s WHERE s.source_relid = d.source_relid)
        RETURNING d.source_relid
    LOOP
        PERFORM trim_capture(dropped);
    END LOOP;
    PERFORM record_full_reason(p_pgt_id);
    PERFORM check_hold_back();
    PERFORM mark_reinitialize(p_pgt_id, 'a view or function that it uses was replaced, or a source can be captured now');
END
$$;
COMMENT ON FUNCTION pgtrickle.adopt_definition(integer) IS
    'Records what the defining query reads and calls now, and has the stream table reinitialized. Error 42P17 if it would read itself, '
    '0A000 or 42501 if the query would have been refused.';

CREATE OR REPLACE FUNCTION pgtrickle.definition_changed(stream_table pgtrickle.pgt_stream_tables) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT EXISTS (SELECT FROM pg_class WHERE oid = (stream_table).view_relid) AND (
        (stream_table).view_stamp IS DISTINCT FROM view_stamp((stream_table).view_relid)
        OR EXISTS (SELECT FROM pgt_dependencies AS d JOIN pg_class AS c ON c.oid = d.source_relid
                   JOIN query_sources((stream_table).view_relid) AS s ON s.source_relid = d.source_relid
                   WHERE d.pgt_id = (stream_table).pgt_id AND d.source_type = 'UNCAPTURED' AND s.obstacle IS NULL))
$$;
COMMENT ON FUNCTION pgtrickle.definition_changed(pgtrickle.pgt_stream_tables) IS
    'Whether something below the defining query was replaced, or a source that could not be captured now can be.';

CREATE OR REPLACE FUNCTION pgtrickle.changed_definitions() RETURNS SETOF integer
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT t.pgt_id FROM pgt_stream_tables AS t WHERE definition_changed(t) ORDER BY t.pgt_id
$$;
COMMENT ON FUNCTION pgtrickle.changed_definitions() IS
    'Stream tables for which adopt_definition() must be called before they are refreshed; every tick does so.';
