-- Frontiers and cuts count transactions, so they mean nothing in another cluster. Watermarks have cuts also where there
-- is no stream table: so the cluster is noted by itself, too.

CREATE OR REPLACE FUNCTION pgtrickle_private.restored() RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
BEGIN
    RETURN CASE
        WHEN EXISTS (SELECT FROM pgt_stream_tables
                     WHERE system_identifier <> (SELECT c.system_identifier FROM pg_control_system() AS c)
                     UNION ALL SELECT FROM pgt_feeds
                     WHERE system_identifier <> (SELECT c.system_identifier FROM pg_control_system() AS c)
                     UNION ALL SELECT FROM pgt_clusters
                     WHERE system_identifier <> (SELECT c.system_identifier FROM pg_control_system() AS c))
            THEN 'the database was restored or copied from another cluster'
        -- A dump names a source, which has another number once restored, but what was named after its number is as it
        -- was.
        WHEN EXISTS (SELECT FROM pgt_change_tracking
                     WHERE substring(buffer FROM '\d+$') <> source_relid::oid::text)
            THEN 'the database was restored from a dump'
        -- Where the sources are missing, the rows that name them cannot be restored; what was named after them can.
        WHEN NOT EXISTS (SELECT FROM pgt_change_tracking) AND EXISTS (
            SELECT FROM pg_depend AS d JOIN pg_proc AS p ON p.oid = d.objid
            WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_namespace'::regclass
                AND d.refobjid = 'pgtrickle_changes'::regnamespace AND starts_with(p.proname, 'capture_'))
            THEN 'the database was restored without the tables that stream tables read'
    END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.restored() IS
    'In which way the database was restored since the last tick, so that frontiers mean nothing any more, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle.adopt_cluster() RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    reason CONSTANT text := restored();
    adopted integer;
BEGIN
    PERFORM refuse_copied();
    IF reason IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM number_rows_onward();
    UPDATE pgt_dependencies SET frontier = NULL;
    DELETE FROM pgt_watermark_history;
    UPDATE pgt_watermarks SET cut = ROW('1:1:', NULL, NULL, NULL)::cut;
    -- All go before any comes back: the number of one source may have been that of another.
    PERFORM remove_capture(source_relid) FROM pgt_change_tracking;
    PERFORM drop_foreign_capture();
    PERFORM cut_off(ARRAY(SELECT f.feed_id FROM pgt_feeds AS f), reason);
    DELETE FROM pgt_versions;
    PERFORM number_versions_anew();
    DELETE FROM pgt_clusters;
    INSERT INTO pgt_clusters (system_identifier) SELECT c.system_identifier FROM pg_control_system() AS c;
    UPDATE pgt_feeds SET system_identifier = (SELECT c.system_identifier FROM pg_control_system() AS c);
    PERFORM record_sources(pgt_id) FROM pgt_stream_tables ORDER BY pgt_id;
    UPDATE pgt_stream_tables
    SET system_identifier = (SELECT c.system_identifier FROM pg_control_system() AS c),
        refresh_xid = NULL, frontier = NULL,
        reinitialize_reason = CASE WHEN status = 'INITIALIZING' THEN reinitialize_reason
            ELSE COALESCE(reinitialize_reason, reason) END;
    GET DIAGNOSTICS adopted = ROW_COUNT;
    -- A dump does not say who may use the row types of tables.
    PERFORM settle_grants();
    RETURN adopted;
END
$$;
COMMENT ON FUNCTION pgtrickle.adopt_cluster() IS
    'After a restore, into this cluster or another: voids frontiers and cuts, installs capture anew and has all '
    'stream tables reinitialized. Error 55000 while a subscription copies the database from another server. '
    'Watermarks stay, but hold_back needs each source to advance once more. Returns the number of stream tables '
    'adopted, 0 where nothing was to do.';

-- Many a function is written where no trigger calls it: which ones do goes by how a source is captured, whether it is
-- partitioned, and whether rows that are too late are kept out. A subscribed table is none any more after a restore. Of
-- a source that was dropped the functions stay for a while, without triggers.
CREATE OR REPLACE FUNCTION pgtrickle_private.called_functions() RETURNS TABLE (one_of text[])
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
    WITH tracked AS (
        SELECT k.capture_mode, c.relkind, c.oid IS NOT NULL AS is_there, substring(k.buffer FROM '\d+$') AS number
        FROM pgt_change_tracking AS k LEFT JOIN pg_class AS c ON c.oid = k.source_relid)
    SELECT ARRAY[e.prefix || t.number]
    FROM tracked AS t CROSS JOIN LATERAL (VALUES
        ('capture_row_', true),
        ('capture_', t.capture_mode = 'statement'),
        ('capture_moved_', t.capture_mode = 'statement' AND t.relkind = 'p'),
        ('capture_truncate_', t.relkind <> 'p')) AS e(prefix, is_called)
    WHERE t.is_there AND e.is_called
    -- Where sources are missing, nothing says any more which there were.
    UNION ALL SELECT ARRAY[p.proname::text] FROM pg_proc AS p
    WHERE p.pronamespace = 'pgtrickle_changes'::regnamespace AND p.proname ~ '^capture_row_\d+$'
        AND NOT EXISTS (SELECT FROM tracked AS t WHERE p.proname = 'capture_row_' || t.number)
    UNION ALL SELECT e.functions
    FROM pgt_event_times AS d JOIN pg_class AS c ON c.oid = d.source_relid CROSS JOIN LATERAL (VALUES
        (ARRAY[format('late_%s', d.event_time_id), format('late_row_%s', d.event_time_id)], true),
        (ARRAY[format('too_late_%s', d.event_time_id)], d.too_late IS NOT NULL)) AS e(functions, is_called)
    WHERE e.is_called
$$;
COMMENT ON FUNCTION pgtrickle_private.called_functions() IS
    'Names of trigger functions: one of each row has a trigger wherever capture and event times are installed whole.';

-- Sources are captured anew, which pg_restore must not meet halfway. It writes keys and triggers last, in any order
-- where it works in parallel; otherwise triggers in the order of their names. Not every role may see what other
-- sessions do.
CREATE OR REPLACE FUNCTION pgtrickle_private.not_restored_yet() RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT COALESCE(
        (SELECT format('it lacks the keys of pgtrickle.%I', c.relname) FROM pg_class AS c
         WHERE c.relnamespace = 'pgtrickle'::regnamespace AND c.relkind = 'r'
             AND c.relname NOT IN ('pgt_refresh_secret', 'pgt_capture_gaps')
             AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary)
         ORDER BY c.relname LIMIT 1),
        (SELECT format('it lacks the triggers that call %s', min(p.oid::regprocedure::text))
         FROM called_functions() AS f JOIN pg_proc AS p ON p.proname = ANY (f.one_of)
             AND p.pronamespace = 'pgtrickle_changes'::regnamespace
         GROUP BY f.one_of HAVING NOT bool_or(EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgfoid = p.oid))
         ORDER BY f.one_of LIMIT 1),
        (SELECT format('pg_restore is at work in process %s', min(a.pid)) FROM pg_stat_activity AS a
         WHERE a.application_name = 'pg_restore' AND a.datname = current_database() HAVING count(*) > 0))
$$;
COMMENT ON FUNCTION pgtrickle_private.not_restored_yet() IS
    'What a restored database still lacks before it may be adopted, as a sentence, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.adopt_restored() RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    lacking CONSTANT text := CASE WHEN restored() IS NOT NULL THEN not_restored_yet() END;
BEGIN
    IF lacking IS NOT NULL THEN
        RAISE EXCEPTION 'The database is not restored completely yet: %.', lacking
            USING ERRCODE = '55000', CONSTRAINT = 'restore_under_way',
                  HINT = 'It goes on by itself once the restore is done. If the restore has ended, SELECT '
                      'pgtrickle.adopt_cluster() goes on with what is there.';
    END IF;
    RETURN adopt_cluster();
END
$$;
COMMENT ON FUNCTION pgtrickle_private.adopt_restored() IS
    'Does what adopt_cluster() does once a restored database is complete; error 55000 until then.';

CREATE OR REPLACE FUNCTION pgtrickle_private.drop_foreign_capture() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET client_min_messages = warning
        SET standard_conforming_strings = on
AS $$
DECLARE
    capture_function regprocedure;
BEGIN
    FOR capture_function IN
        SELECT oid FROM pg_proc WHERE pronamespace = 'pgtrickle_changes'::regnamespace
            AND proname ~ '^capture_(row_|truncate_|moved_)?\d+$'
    LOOP
        EXECUTE format('DROP FUNCTION %s CASCADE', capture_function);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.drop_foreign_capture() IS
    'Drops capture functions, with their triggers, whose names carry numbers of another cluster.';
