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
    IF reason IS NULL THEN
        RETURN 0;
    END IF;
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
    'stream tables reinitialized. '
    'Watermarks stay, but hold_back needs each source to advance once more. Returns the number of stream tables '
    'adopted, 0 where nothing was to do.';

-- Sources are captured anew, which pg_restore must not meet halfway. It writes keys and triggers last, in any order
-- where it works in parallel. Not every role may see what other sessions do.
CREATE OR REPLACE FUNCTION pgtrickle_private.not_restored_yet() RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT COALESCE(
        (SELECT format('it lacks the keys of pgtrickle.%I', c.relname) FROM pg_class AS c
         WHERE c.relnamespace = 'pgtrickle'::regnamespace AND c.relkind = 'r'
             AND c.relname NOT IN ('pgt_leader', 'pgt_refresh_secret', 'pgt_capture_gaps')
             AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary)
         ORDER BY c.relname LIMIT 1),
        (SELECT format('it lacks the triggers that call %s', p.oid::regprocedure) FROM pg_proc AS p
         WHERE p.pronamespace = 'pgtrickle_changes'::regnamespace AND p.prorettype = 'trigger'::regtype
             AND NOT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgfoid = p.oid)
         ORDER BY p.proname LIMIT 1),
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
