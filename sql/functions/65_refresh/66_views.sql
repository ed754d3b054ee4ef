-- A defining query may get another meaning: it is altered, or views and functions below it are replaced behind our
-- back, which is taken in before anything is refreshed.

-- Of rows that became equal one is left only once the stream table is computed anew, which makes a unique index again.
CREATE OR REPLACE FUNCTION pgtrickle_private.renew_indexes_of_rows(p_pgt_id bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT i.indexrelid::regclass AS name, i.indisunique AS is_unique
        FROM pgt_stream_tables AS t JOIN pg_index AS i ON i.indrelid = t.pgt_relid
            JOIN pg_class AS c ON c.oid = i.indexrelid
        WHERE t.pgt_id = p_pgt_id AND c.relname IN (format('pgt_key_%s', p_pgt_id), format('pgt_row_%s', p_pgt_id))
            AND EXISTS (
                SELECT FROM parts_of_types(ARRAY(
                    SELECT a.atttypid FROM pg_attribute AS a WHERE a.attrelid = t.pgt_relid AND a.attnum > 0)) AS p(id)
                JOIN pg_type AS y ON y.oid = p.id WHERE y.typrelid <> 0)
    LOOP
        EXECUTE format(CASE WHEN found.is_unique THEN 'DROP INDEX %s' ELSE 'REINDEX INDEX %s' END, found.name);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.renew_indexes_of_rows(bigint) IS
    'Renews the indexes of a stream table that has rows among its values, which compare by the columns that they have '
    'now.';

CREATE OR REPLACE FUNCTION pgtrickle_private.adopt_definition(p_pgt_id bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    view CONSTANT regclass := (SELECT t.view_relid FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id);
    dropped regclass;
BEGIN
    PERFORM refuse_volatile(view);
    -- Who need not own a source to refresh what is captured is told what hides rows, not that another one owns it.
    PERFORM refuse_access(p.code, p.message, p.hint) FROM access_problems(view) AS p
        ORDER BY p.code DESC, p.message LIMIT 1;
    PERFORM check_source_rights(view);
    PERFORM mirror_equalities(view);
    UPDATE pgt_stream_tables AS t SET session_settings = session_settings(view) || t.session_settings
    WHERE t.pgt_id = p_pgt_id;
    PERFORM wrap_functions(view, t.session_settings ->> 'search_path') FROM pgt_stream_tables AS t
        WHERE t.pgt_id = p_pgt_id;
    PERFORM record_sources(p_pgt_id);
    FOR dropped IN
        DELETE FROM pgt_dependencies AS d
        WHERE d.pgt_id = p_pgt_id
            AND NOT EXISTS (SELECT FROM query_sources(view) AS s WHERE s.source_relid = d.source_relid)
        RETURNING d.source_relid
    LOOP
        PERFORM trim_capture(dropped);
    END LOOP;
    PERFORM number_cycles();
    PERFORM record_full_reason(p_pgt_id);
    PERFORM check_hold_back();
    PERFORM renew_indexes_of_rows(p_pgt_id);
    PERFORM mark_reinitialize(p_pgt_id,
        'a view or function that it uses was replaced, a name or label in it may mean something else, or a source can '
        'be captured now');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.adopt_definition(bigint) IS
    'Records what the defining query reads and calls now, and has the stream table reinitialized. Error 42P17 if it '
    'would read itself, '
    '0A000 or 42501 if the query would have been refused.';

CREATE OR REPLACE FUNCTION pgtrickle_private.definition_changed(stream_table pgtrickle.pgt_stream_tables)
    RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT EXISTS (SELECT FROM pg_class WHERE oid = (stream_table).view_relid) AND (
        (stream_table).view_stamp IS DISTINCT FROM view_stamp((stream_table).view_relid)
        OR EXISTS (SELECT FROM pgt_dependencies AS d JOIN pg_class AS c ON c.oid = d.source_relid
                   JOIN query_sources((stream_table).view_relid) AS s ON s.source_relid = d.source_relid
                   WHERE d.pgt_id = (stream_table).pgt_id AND d.source_type = 'UNCAPTURED' AND s.obstacle IS NULL)
        OR EXISTS (SELECT FROM access_problems((stream_table).view_relid)))
$$;
COMMENT ON FUNCTION pgtrickle_private.definition_changed(pgtrickle.pgt_stream_tables) IS
    'Whether something below the defining query was replaced, a source that could not be captured now can be, '
    'or what it reads may not be read, or not in full, any more.';

CREATE OR REPLACE FUNCTION pgtrickle_private.changed_definitions() RETURNS SETOF bigint
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT t.pgt_id FROM pgt_stream_tables AS t WHERE definition_changed(t) ORDER BY t.pgt_id
$$;
COMMENT ON FUNCTION pgtrickle_private.changed_definitions() IS
    'Stream tables for which adopt_definition() must be called before they are refreshed; every tick does so.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_other_columns(view regclass, stored regclass) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    columns CONSTANT text := columns_of(stored);
BEGIN
    IF columns IS DISTINCT FROM columns_of(view) THEN
        PERFORM refuse_query('the new query has other columns than the stream table',
            format('It must have the columns %s. For others drop the stream table, and create it again.', columns));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_other_columns(regclass, regclass) IS
    'Error 0A000 unless a view has the columns of a stream table: names, types and collations.';

-- A refresh may hold its snapshot, and with it what is locked here, while another of its sessions waits for the row of
-- the stream table: so no lock is kept while waiting for one of them, and all of them come before that row.
CREATE OR REPLACE FUNCTION pgtrickle_private.try_set_query_aside(id bigint) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET lock_timeout = '400ms' SET client_min_messages = warning
AS $$
DECLARE
    unique_key regclass;
    beside regclass;
    view CONSTANT regclass := (SELECT t.view_relid FROM pgt_stream_tables AS t WHERE t.pgt_id = id);
BEGIN
    -- One that went with what it read leaves nothing to rename.
    IF EXISTS (SELECT FROM pg_class AS c WHERE c.oid = view) THEN
        EXECUTE format('ALTER VIEW %s RENAME TO query_%s_before', view, id);
    END IF;
    -- What was derived from the query before: the key of its groups and their state, the rows below its LIMIT.
    FOR unique_key IN
        SELECT i.indexrelid FROM pgt_stream_tables AS t JOIN pg_index AS i ON i.indrelid = t.pgt_relid
            JOIN pg_class AS c ON c.oid = i.indexrelid
        WHERE t.pgt_id = id AND c.relname = format('pgt_key_%s', id)
    LOOP
        EXECUTE format('DROP INDEX %s', unique_key);
    END LOOP;
    FOR beside IN SELECT kept_beside(id) LOOP
        EXECUTE format('DROP TABLE %s', beside);
    END LOOP;
    UPDATE pgt_stream_tables SET kept_groups = NULL WHERE pgt_id = id AND kept_groups IS NOT NULL;
    RETURN true;
EXCEPTION
    WHEN lock_not_available OR deadlock_detected THEN RETURN false;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.try_set_query_aside(bigint) IS
    'Renames the hidden view of a stream table and drops what was derived from its query; false, and nothing done, '
    'where a transaction uses them.';

CREATE OR REPLACE FUNCTION pgtrickle_private.set_query_aside(id bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    patience CONSTANT interval := COALESCE(NULLIF(current_setting('lock_timeout')::interval, '0'), '5 minutes');
    started CONSTANT timestamptz := clock_timestamp();
BEGIN
    WHILE NOT try_set_query_aside(id) LOOP
        IF clock_timestamp() > started + patience THEN
            RAISE EXCEPTION 'could not lock stream table number % within %', id, written_interval(patience)
                USING ERRCODE = '55P03', CONSTRAINT = 'capture_lock',
                      HINT = 'A long transaction reads it, or a refresh of it is under way; try again later.';
        END IF;
        PERFORM pg_sleep(0.05);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.set_query_aside(bigint) IS
    'Waits until nobody uses the query of a stream table, then sets it aside. Gives up after lock_timeout, or 5 '
    'minutes.';

CREATE OR REPLACE FUNCTION pgtrickle_private.replace_query_view(id bigint, query text, search_path text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    stream_table pgt_stream_tables;
    written regclass;
    canonical text;
BEGIN
    SELECT * INTO stream_table FROM pgt_stream_tables AS t WHERE t.pgt_id = id;
    PERFORM set_query_aside(id);
    written := create_query_view(id, query, search_path);
    PERFORM refuse_other_columns(written, stream_table.pgt_relid);
    IF to_regclass(format('pgtrickle_state.query_%s_before', id)) IS NULL THEN
        PERFORM lock_query_sources(written);
        UPDATE pgt_stream_tables AS t SET view_relid = written WHERE t.pgt_id = id RETURNING * INTO stream_table;
    ELSE
        canonical := pg_get_viewdef(written);
        EXECUTE format('DROP VIEW pgtrickle_state.query_%s', id);
        -- The view keeps its identity, by which a refresh under way knows it. That refresh then fails when it wants to
        -- commit.
        EXECUTE format('CREATE OR REPLACE VIEW pgtrickle_state.query_%s_before AS %s', id, canonical);
        PERFORM lock_query_sources(stream_table.view_relid);
    END IF;
    PERFORM name_query_view(stream_table);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.replace_query_view(bigint, text, text) IS
    'Gives the hidden view of a stream table another query with the same columns, and locks what that reads. A view '
    'that was dropped with what it read is made anew.';

CREATE OR REPLACE FUNCTION pgtrickle_private.adopt_query(id bigint, query text, search_path text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    UPDATE pgt_stream_tables AS t
    SET defining_query = query, recomputation_asked = t.frontier_version > 0,
        session_settings = session_settings(t.view_relid)
            || jsonb_build_object('search_path', resolved_search_path(search_path)),
        earlier_query_through = CASE WHEN t.output_mode = 'append' THEN t.effective_watermark
            ELSE t.frozen_before END
    WHERE t.pgt_id = id;
    PERFORM mark_reinitialize(id, 'its defining query was altered');
    PERFORM adopt_definition(id);
    PERFORM drop_idle_mirrors();
    PERFORM drop_idle_wrappers();
END
$$;
COMMENT ON FUNCTION pgtrickle_private.adopt_query(bigint, text, text) IS
    'Records the query that the hidden view of a stream table was given, and has the stream table computed anew.';
