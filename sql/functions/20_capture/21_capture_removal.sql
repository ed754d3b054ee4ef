-- Removing capture, or what of it nobody reads any more.

CREATE OR REPLACE FUNCTION pgtrickle_private.cut_off_feeds(source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM pgt_feeds AS f WHERE f.source_relid = source) THEN
        PERFORM cut_off(ARRAY(SELECT f.feed_id FROM pgt_feeds AS f WHERE f.source_relid = source),
            'its changes may have been missed, or it was dropped');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.cut_off_feeds(regclass) IS
    'Tells all feeds of a source that its changes may have been missed.';

CREATE OR REPLACE FUNCTION pgtrickle_private.remove_capture(source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET client_min_messages = warning
AS $$
DECLARE
    capture_buffer text;
    capture_function regprocedure;
BEGIN
    PERFORM lock_sources(ARRAY[source], 'ACCESS EXCLUSIVE', ARRAY(SELECT buffer FROM pgt_change_tracking
        WHERE source_relid = source));
    -- CASCADE: the triggers go with their functions, on whatever relation they are.
    FOR capture_function IN
        SELECT oid FROM pg_proc WHERE pronamespace = 'pgtrickle_changes'::regnamespace
            AND proname IN (format('capture_%s', source::oid), format('capture_row_%s', source::oid),
                format('capture_truncate_%s', source::oid), format('capture_moved_%s', source::oid))
    LOOP
        EXECUTE format('DROP FUNCTION %s CASCADE', capture_function);
    END LOOP;
    DELETE FROM pgt_capture_gaps WHERE source_relid = source;
    PERFORM cut_off_feeds(source);
    DELETE FROM pgt_change_tracking WHERE source_relid = source RETURNING buffer INTO capture_buffer;
    IF FOUND THEN
        -- With the view of its feeds, which may be named by a number of another cluster.
        EXECUTE format('DROP TABLE IF EXISTS %s CASCADE', capture_buffer);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.remove_capture(regclass) IS
    'Drops the triggers, functions and change buffer of a source.';

CREATE OR REPLACE FUNCTION pgtrickle_private.note_readers(source regclass) RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    UPDATE pgt_change_tracking AS k
    SET tracked_by_pgt_ids = ARRAY(
        SELECT d.pgt_id FROM pgt_dependencies AS d
        WHERE d.source_relid = source AND d.source_type <> 'UNCAPTURED' ORDER BY d.pgt_id)
    WHERE k.source_relid = source
$$;
COMMENT ON FUNCTION pgtrickle_private.note_readers(regclass) IS
    'Writes down for which stream tables a source is captured; whoever calls it has locked the source.';

CREATE OR REPLACE FUNCTION pgtrickle_private.trim_capture(source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    tracking pgt_change_tracking;
    surplus text;
BEGIN
    PERFORM lock_sources(ARRAY[source], 'SHARE ROW EXCLUSIVE', ARRAY(SELECT buffer FROM pgt_change_tracking
        WHERE source_relid = source));
    SELECT * INTO tracking FROM pgt_change_tracking WHERE source_relid = source FOR UPDATE;
    IF NOT EXISTS (SELECT FROM pgt_dependencies WHERE source_relid = source AND source_type <> 'UNCAPTURED'
            UNION ALL SELECT FROM pgt_feeds AS f WHERE f.source_relid = source)
        OR NOT EXISTS (SELECT FROM pg_class WHERE oid = source)
    THEN
        PERFORM remove_capture(source);
        RETURN;
    END IF;
    PERFORM note_readers(source);
    PERFORM keep_capture_problem(source);
    -- A captured column that nobody reads could be dropped by its owner, and then every write would fail.
    FOR surplus IN
        SELECT a.attname FROM pg_attribute AS a
        WHERE a.attrelid = to_regclass(tracking.buffer) AND tracking.captured_columns ? a.attname
            AND a.attname <> ALL (with_columns_below(source, ARRAY(
                SELECT unnest(d.columns_used) FROM pgt_dependencies AS d WHERE d.source_relid = source UNION
                SELECT unnest(f.columns_used) FROM pgt_feeds AS f WHERE f.source_relid = source)))
        -- What is computed from others goes before them.
        ORDER BY a.attnum DESC
    LOOP
        EXECUTE format('ALTER TABLE %s DROP COLUMN %I', tracking.buffer, surplus);
        UPDATE pgt_change_tracking SET captured_columns = captured_columns - surplus WHERE source_relid = source;
    END LOOP;
    PERFORM write_capture(source);
    -- A table has room for 1,600 columns, those that were dropped among them: the next tick makes another buffer.
    IF 500 < (SELECT count(*) FROM pg_attribute AS a WHERE a.attrelid = to_regclass(tracking.buffer) AND a.attisdropped)
    THEN
        PERFORM note_capture_gap(source, source, 'has a change buffer that is full of dropped columns');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.trim_capture(regclass) IS
    'Stops capturing what no stream table and no feed reads any more.';
