-- Setting stream tables right by hand.

CREATE OR REPLACE FUNCTION pgtrickle_private.repair_sources(sources regclass[]) RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    damaged CONSTANT regclass[] := ARRAY(
        SELECT t.source_relid FROM pgt_change_tracking AS t
        WHERE t.source_relid = ANY (sources) AND capture_problem(t.source_relid) IS NOT NULL ORDER BY t.source_relid);
BEGIN
    PERFORM repair_capture(source) FROM unnest(damaged) AS source;
    RETURN (SELECT string_agg(qualified_name(source), ', ') FROM unnest(damaged) AS source);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.repair_sources(regclass[]) IS
    'Installs capture anew on those of these sources where it is damaged; returns their names, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle.repair_stream_table(name text,
    search_path text DEFAULT current_setting('search_path')) RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT bigint := stream_table_id(name, search_path);
BEGIN
    RETURN COALESCE('capture was installed anew on ' || repair_sources(ARRAY(
        SELECT d.source_relid FROM pgt_dependencies AS d WHERE d.pgt_id = id)), 'there is nothing to repair');
END
$$;
COMMENT ON FUNCTION pgtrickle.repair_stream_table(text, text) IS
    'Installs capture anew on those sources of a stream table where it is damaged, and says on which. Stream tables '
    'over them are computed anew.';

CREATE OR REPLACE FUNCTION pgtrickle.rebuild_cdc_triggers() RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM repair_sources(ARRAY(SELECT t.source_relid FROM pgt_change_tracking AS t));
    RETURN 'done';
END
$$;
COMMENT ON FUNCTION pgtrickle.rebuild_cdc_triggers() IS
    'Installs capture anew wherever it is damaged, and leaves alone what is sound; returns the word done.';

CREATE OR REPLACE FUNCTION pgtrickle_private.ask_for_recomputation(name text,
    search_path text DEFAULT current_setting('search_path')) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT bigint := stream_table_id(name, search_path);
BEGIN
    UPDATE pgt_stream_tables AS t
    SET reinitialize_reason = COALESCE(t.reinitialize_reason, 'it was asked for'), recomputation_asked = true
    WHERE t.pgt_id = id;
    RETURN id;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.ask_for_recomputation(text, text) IS
    'Has the next refresh of a stream table compute it anew, also where its refresh mode forbids that by itself; '
    'returns its number.';

CREATE OR REPLACE FUNCTION pgtrickle.reinitialize_stream_table(name text,
    search_path text DEFAULT current_setting('search_path')) RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM file_request(ask_for_recomputation(name, search_path), NULL);
    RETURN format('%s is computed anew by the next refresh', name);
END
$$;
COMMENT ON FUNCTION pgtrickle.reinitialize_stream_table(text, text) IS
    'Has a stream table computed anew by a refresh that follows the commit; returns a sentence that says so.';

CREATE OR REPLACE FUNCTION pgtrickle.restore_stream_tables() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM adopt_cluster();
END
$$;
COMMENT ON FUNCTION pgtrickle.restore_stream_tables() IS
    'After a restore into another cluster: the same as adopt_cluster(), which every tick does by itself.';
