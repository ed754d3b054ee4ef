-- drop_stream_table.

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_dependents(pgt_id bigint) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    dependents text;
BEGIN
    SELECT string_agg(format('%I.%I', d.pgt_schema, d.pgt_name), ', ' ORDER BY d.pgt_id DESC) INTO dependents
    FROM pgt_stream_tables AS t JOIN pgt_dependencies AS p ON p.source_relid = t.pgt_relid
        JOIN pgt_stream_tables AS d ON d.pgt_id = p.pgt_id
    WHERE t.pgt_id = refuse_dependents.pgt_id AND d.pgt_id <> t.pgt_id;
    IF dependents IS NOT NULL THEN
        RAISE EXCEPTION 'other stream tables read it: %', dependents
            USING ERRCODE = '2BP01', CONSTRAINT = 'dependents_exist',
                  HINT = format('Drop them first, or all at once: SELECT pgtrickle.drop_stream_table(%L, '
                      'cascade => true).', (SELECT format('%I.%I', t.pgt_schema, t.pgt_name)
                                            FROM pgt_stream_tables AS t WHERE t.pgt_id = refuse_dependents.pgt_id));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_dependents(bigint) IS 'Error 2BP01 if other stream tables read this one.';

CREATE OR REPLACE FUNCTION pgtrickle_private.downstream_tables(p_pgt_id bigint) RETURNS TABLE (pgt_id bigint)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH RECURSIVE downstream(id) AS (
        SELECT p_pgt_id
        UNION
        SELECT d.pgt_id FROM downstream AS u JOIN pgt_stream_tables AS t ON t.pgt_id = u.id
            JOIN pgt_dependencies AS d ON d.source_relid = t.pgt_relid)
    SELECT id FROM downstream
$$;
COMMENT ON FUNCTION pgtrickle_private.downstream_tables(bigint) IS
    'The stream table and all stream tables that read it, at any depth.';

CREATE OR REPLACE FUNCTION pgtrickle_private.drop_alone(id bigint, cascade boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    dropped pgt_stream_tables;
    sources regclass[] := ARRAY(SELECT source_relid FROM pgt_dependencies WHERE pgt_id = id
        AND source_type <> 'UNCAPTURED');
    relation record;
BEGIN
    PERFORM lock_sources(
        sources || (SELECT pgt_relid FROM pgt_stream_tables WHERE pgt_id = id), 'ACCESS EXCLUSIVE',
        ARRAY(SELECT buffer FROM pgt_change_tracking WHERE source_relid = ANY (sources)));
    DELETE FROM pgt_stream_tables WHERE pgt_id = id RETURNING * INTO dropped;
    PERFORM trim_capture(source) FROM unnest(sources) AS source;
    PERFORM remove_capture(dropped.pgt_relid);
    PERFORM drop_staging(id);
    FOR relation IN
        SELECT CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END AS kind, oid::regclass AS name FROM pg_class
        WHERE oid = ANY (ARRAY[dropped.view_relid, dropped.pgt_relid]::oid[] || ARRAY(SELECT kept_beside(id)::oid))
        ORDER BY relkind DESC
    LOOP
        EXECUTE format('DROP %s %s %s', relation.kind, relation.name, CASE WHEN cascade THEN 'CASCADE'
            ELSE 'RESTRICT' END);
    END LOOP;
    PERFORM drop_idle_mirrors();
    PERFORM drop_idle_wrappers();
    PERFORM number_cycles();
END
$$;
COMMENT ON FUNCTION pgtrickle_private.drop_alone(bigint, boolean) IS
    'Drops a stream table that no other one reads; with cascade also the views that do.';

CREATE OR REPLACE FUNCTION pgtrickle_private.drop_with_dependents(id bigint, cascade boolean) RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT drop_alone(d.pgt_id, cascade) FROM downstream_tables(id) AS d WHERE cascade
        OR d.pgt_id = id ORDER BY d.pgt_id DESC
$$;
COMMENT ON FUNCTION pgtrickle_private.drop_with_dependents(bigint, boolean) IS
    'Drops a stream table, with cascade after those that read it.';

-- A refresh may use the hidden view and wait, in another session, for a row that is locked here.
CREATE OR REPLACE FUNCTION pgtrickle_private.drop_or_give_up(id bigint, cascade boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET lock_timeout = '30s'
AS $$
BEGIN
    PERFORM drop_with_dependents(id, cascade);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.drop_or_give_up(bigint, boolean) IS
    'The same for a caller who set no lock_timeout: it waits for half a minute.';

CREATE OR REPLACE FUNCTION pgtrickle.drop_stream_table(
        name text, cascade boolean DEFAULT false, search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET client_min_messages = warning
AS $$
DECLARE
    id CONSTANT bigint := stream_table_id(name, search_path);
BEGIN
    IF cascade IS NULL THEN
        PERFORM refuse_value('cascade', NULL, 'Use true or false.');
    ELSIF NOT cascade THEN
        PERFORM refuse_dependents(id);
    END IF;
    IF current_setting('lock_timeout')::interval = '0' THEN
        PERFORM drop_or_give_up(id, cascade);
    ELSE
        PERFORM drop_with_dependents(id, cascade);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.drop_stream_table(text, boolean, text) IS
    'Drops a stream table with its rows, and the capture nobody else needs. With cascade also the stream tables and '
    'views that read it. '
    'Waits for what uses them up to lock_timeout, or half a minute.';

-- What other stream tables read stays known, so that they can be told what they lost.
CREATE OR REPLACE FUNCTION pgtrickle_private.plainly_dropped() RETURNS SETOF pgtrickle.pgt_stream_tables
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT t.* FROM pgt_stream_tables AS t
    WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = t.pgt_relid)
        AND NOT EXISTS (SELECT FROM pgt_dependencies AS d WHERE d.source_relid = t.pgt_relid AND d.pgt_id <> t.pgt_id)
$$;
COMMENT ON FUNCTION pgtrickle_private.plainly_dropped() IS
    'The stream tables whose tables were dropped by DROP TABLE, and which no other one reads.';

CREATE OR REPLACE FUNCTION pgtrickle_private.remove_dropped(id bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET client_min_messages = notice
AS $$
DECLARE
    name CONSTANT text := (SELECT format('%I.%I', t.pgt_schema, t.pgt_name) FROM pgt_stream_tables AS t
        WHERE t.pgt_id = id);
BEGIN
    PERFORM drop_with_dependents(id, false);
    RAISE NOTICE '% was a stream table: what kept it up to date is removed as well', name
        USING CONSTRAINT = 'dropped_stream_table', HINT = 'Next time use pgtrickle.drop_stream_table().';
END
$$;
COMMENT ON FUNCTION pgtrickle_private.remove_dropped(bigint) IS
    'Removes all that was made for a stream table whose table was dropped, and says so.';

-- Nobody's DROP fails because of this, or waits for long: what cannot be removed now, the next tick removes. Where one
-- source is in use, the sources of what else was dropped with it are not waited for.
CREATE OR REPLACE FUNCTION pgtrickle_private.notice_drops() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET client_min_messages = notice SET lock_timeout = '400ms'
AS $$
DECLARE
    gone pgt_stream_tables;
    busy boolean := false;
BEGIN
    -- As when the catalog itself is dropped.
    IF to_regclass('pgtrickle.pgt_stream_tables') IS NULL OR to_regclass('pgtrickle.pgt_dependencies') IS NULL THEN
        RETURN;
    END IF;
    FOR gone IN SELECT p.* FROM plainly_dropped() AS p
        WHERE p.pgt_relid IN (SELECT d.objid FROM pg_event_trigger_dropped_objects() AS d WHERE d.object_type = 'table')
    LOOP
        BEGIN
            IF NOT busy THEN
                PERFORM remove_dropped(gone.pgt_id);
                CONTINUE;
            END IF;
        EXCEPTION
            WHEN lock_not_available OR deadlock_detected THEN busy := true;
            WHEN dependent_objects_still_exist THEN NULL;
        END;
        RAISE NOTICE '%.% was a stream table: the next tick removes what kept it up to date',
            quote_ident(gone.pgt_schema), quote_ident(gone.pgt_name);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.notice_drops() IS
    'After a DROP TABLE of a stream table, removes its capture and all else that was made for it.';
