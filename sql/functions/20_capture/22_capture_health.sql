-- Noticing that changes were missed, and starting over.

CREATE OR REPLACE FUNCTION pgtrickle_private.capture_triggers_problem(source regclass, mode text) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT format('capture trigger %s on %s %s', expected.trigger_name, expected.relation::regclass,
                  CASE WHEN t.oid IS NULL THEN 'is missing'
                       WHEN t.tgenabled <> expected.fires THEN 'was disabled'
                       ELSE 'was replaced' END)
    FROM capture_triggers(source, mode) AS expected
    LEFT JOIN pg_trigger AS t ON t.tgrelid = expected.relation AND t.tgname = expected.trigger_name
    WHERE t.oid IS NULL OR t.tgenabled <> expected.fires
        OR t.tgfoid IS DISTINCT FROM to_regproc(format('pgtrickle_changes.%I', expected.function_name))
    ORDER BY 1 LIMIT 1
$$;
COMMENT ON FUNCTION pgtrickle_private.capture_triggers_problem(regclass, text) IS
    'The first capture trigger that is not as installed, or NULL.';

-- A partition or child that was detached keeps its triggers, which go on capturing what it has.
CREATE OR REPLACE FUNCTION pgtrickle_private.stray_triggers(source regclass, parts oid[])
    RETURNS TABLE (trigger_name name, relation regclass)
    LANGUAGE plpgsql STABLE ROWS 1 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT t.tgname, t.tgrelid::regclass
    FROM unnest(ARRAY['capture_', 'capture_row_', 'capture_truncate_', 'capture_moved_']) AS f(kind)
        JOIN pg_proc AS p ON p.proname = f.kind || source::oid AND p.pronamespace = 'pgtrickle_changes'::regnamespace
        JOIN pg_depend AS d ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
            AND d.classid = 'pg_trigger'::regclass
        JOIN pg_trigger AS t ON t.oid = d.objid
    WHERE t.tgparentid = 0 AND t.tgrelid <> ALL (parts);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.stray_triggers(regclass, oid[]) IS
    'Capture triggers of a source on relations that are no parts of it any more.';

CREATE OR REPLACE FUNCTION pgtrickle_private.capture_columns_problem(source regclass, buffer text, columns text[])
    RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE
        WHEN to_regclass(buffer) IS NULL THEN format('change buffer %s is missing', buffer)
        WHEN EXISTS (SELECT FROM pg_class AS c WHERE c.oid = to_regclass(buffer) AND c.relpersistence = 'u')
            THEN format('change buffer %s is unlogged, a crash may have emptied it', buffer)
        ELSE COALESCE((
            SELECT format('captured column %I was dropped, renamed or has another type', name)
            FROM unnest(columns) AS name
            WHERE column_definition(source, name) IS DISTINCT FROM column_definition(to_regclass(buffer), name)
                OR 1 = (SELECT count(*) FROM pg_attribute AS a
                        WHERE a.attrelid IN (source, to_regclass(buffer)) AND a.attname = name
                            AND a.attgenerated = 'v')
            ORDER BY 1 LIMIT 1), 'another column was renamed to ' || quote_ident(renamed_column(source)))
    END
$$;
COMMENT ON FUNCTION pgtrickle_private.capture_columns_problem(regclass, text, text[]) IS
    'The first captured column that the source no longer has as it was, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.capture_damage(source regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    tracking pgt_change_tracking;
    columns text[];
    stamp text;
BEGIN
    SELECT * INTO tracking FROM pgt_change_tracking WHERE source_relid = source;
    IF NOT FOUND THEN
        RETURN 'it is not captured';
    ELSIF NOT EXISTS (SELECT FROM pg_class WHERE oid = source) THEN
        RETURN 'it no longer exists';
    END IF;
    columns := ARRAY(SELECT jsonb_object_keys(tracking.captured_columns));
    stamp := capture_stamp(source, tracking.capture_mode);
    RETURN COALESCE(
        'it ' || capture_obstacle(source),
        CASE WHEN tracking.relations <> capture_relations(source)
            THEN 'partitions or children were attached or detached' END,
        CASE WHEN tracking.capture_mode <> capture_mode(source) THEN 'it needs ' || capture_mode(source)
            || ' triggers now' END,
        capture_columns_problem(source, tracking.buffer, columns),
        capture_triggers_problem(source, tracking.capture_mode),
        (SELECT format('%s is captured still, though no part of it any more', s.relation)
         FROM stray_triggers(source, tracking.relations) AS s ORDER BY 1 LIMIT 1),
        (SELECT format('capture function %s was changed', f.function_name)
         FROM capture_functions(source, tracking.buffer, columns) AS f
         LEFT JOIN pg_proc AS p ON p.proname = f.function_name AND p.pronamespace = 'pgtrickle_changes'::regnamespace
         WHERE p.prosrc IS DISTINCT FROM f.body LIMIT 1),
        CASE WHEN split_part(split_part(tracking.trigger_stamp, ' ', 1), '/', 2) NOT IN (
                '', split_part(split_part(stamp, ' ', 1), '/', 2))
            THEN 'the expression of a generated column was changed' END,
        CASE WHEN split_part(split_part(tracking.trigger_stamp, ' ', 1), '/', 1)
                <> split_part(split_part(stamp, ' ', 1), '/', 1)
            THEN 'capture triggers were altered' || CASE WHEN cardinality(tracking.relations) > 1
                THEN ', or partitions or children attached again' ELSE '' END END,
        CASE WHEN tracking.capture_mode = 'statement' AND was_part_of_another(tracking.trigger_stamp, stamp)
            THEN 'it, or a child of it, may have been a part of another table for a while' END,
        CASE WHEN tracking.trigger_stamp <> stamp AND was_rewritten(source, tracking.trigger_stamp, stamp)
            THEN 'it was written anew after a column was altered that a query reads within whole rows' END);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.capture_damage(regclass) IS
    'In which way capture of the source is not as it was installed, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle.capture_problem(source regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN COALESCE(
        (SELECT format('%s %s', relation, reason) FROM pgt_capture_gaps WHERE source_relid = source ORDER BY noted_at
            LIMIT 1),
        capture_damage(source));
END
$$;
COMMENT ON FUNCTION pgtrickle.capture_problem(regclass) IS
    'Why changes of the source may have been missed since capture was installed, or NULL. Then call '
    'pgtrickle.repair_capture().';

-- Else what is altered, and altered back months later, would look as if nothing of it had been changed.
CREATE OR REPLACE FUNCTION pgtrickle_private.altered_harmlessly() RETURNS SETOF regclass
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT t.source_relid FROM pgt_change_tracking AS t
    WHERE CASE WHEN t.trigger_stamp <> capture_stamp(t.source_relid, t.capture_mode)
        THEN capture_problem(t.source_relid) IS NULL END
$$;
COMMENT ON FUNCTION pgtrickle_private.altered_harmlessly() IS
    'Sources of which columns were altered since that was last remembered, without a change being missed.';

CREATE OR REPLACE FUNCTION pgtrickle_private.remember_alterations(source regclass) RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    UPDATE pgt_change_tracking AS t SET trigger_stamp = capture_stamp(source, t.capture_mode)
        WHERE t.source_relid = source AND capture_problem(source) IS NULL
$$;
COMMENT ON FUNCTION pgtrickle_private.remember_alterations(regclass) IS
    'Has later alterations of a source compared with what it is like now, unless changes may have been missed.';

CREATE OR REPLACE FUNCTION pgtrickle.capture_problem(
        source text, search_path text DEFAULT current_setting('search_path')) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN capture_problem(source_named(source, search_path));
END
$$;
COMMENT ON FUNCTION pgtrickle.capture_problem(text, text) IS
    'The same for a source that comes by its name, as text.';

CREATE OR REPLACE FUNCTION pgtrickle_private.mark_reinitialize(pgt_id bigint, reason text) RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    UPDATE pgt_stream_tables AS t SET reinitialize_reason = COALESCE(t.reinitialize_reason, reason)
    WHERE t.pgt_id = mark_reinitialize.pgt_id AND t.status <> 'INITIALIZING'
$$;
COMMENT ON FUNCTION pgtrickle_private.mark_reinitialize(bigint, text) IS
    'Has the next refresh compute the stream table anew. The first reason given stays.';

CREATE OR REPLACE FUNCTION pgtrickle_private.reason_of_repair(source regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN format(
        'changes of %s may have been missed: %s', COALESCE(
            (SELECT t.source_name FROM pgt_change_tracking AS t WHERE t.source_relid = source), qualified_name(source)),
            COALESCE(capture_problem(source), 'repair was asked for'));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.reason_of_repair(regclass) IS
    'Why what reads the source is about to be reinitialized.';

CREATE OR REPLACE FUNCTION pgtrickle.repair_capture(source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    reason CONSTANT text := reason_of_repair(source);
    dependency record;
BEGIN
    IF COALESCE((SELECT c.relkind NOT IN ('r', 'p') FROM pg_class AS c WHERE c.oid = source), source IS NULL) THEN
        PERFORM refuse_value('source', qualified_name(source), 'Name a table that a stream table reads.');
    ELSIF NOT EXISTS (SELECT FROM pgt_dependencies AS d WHERE d.source_relid = source)
            AND NOT EXISTS (SELECT FROM pgt_change_tracking AS k WHERE k.source_relid = source) THEN
        PERFORM refuse_value('source', source::text, 'Name a table that a stream table or a feed reads.');
    END IF;
    -- The strongest lock that removing needs comes first: one that is kept while waiting for another would stop
    -- loaders.
    PERFORM remove_capture(source);
    FOR dependency IN
        SELECT d.pgt_id, q.* FROM pgt_dependencies AS d JOIN pgt_stream_tables AS t USING (pgt_id)
        LEFT JOIN LATERAL query_sources(t.view_relid) AS q USING (source_relid)
        WHERE d.source_relid = source AND d.source_type <> 'UNCAPTURED' ORDER BY d.pgt_id
    LOOP
        IF dependency.source_type IS NOT NULL THEN
            PERFORM record_source(dependency.pgt_id, source, dependency.source_type, dependency.columns_used);
            PERFORM record_full_reason(dependency.pgt_id);
        END IF;
        PERFORM mark_reinitialize(dependency.pgt_id, reason);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle.repair_capture(regclass) IS
    'Installs capture of the source anew with an empty buffer, and has every stream table that reads it reinitialized.';

CREATE OR REPLACE FUNCTION pgtrickle.repair_capture(
        source text, search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM repair_capture(source_named(source, search_path));
END
$$;
COMMENT ON FUNCTION pgtrickle.repair_capture(text, text) IS
    'The same for a source that comes by its name, as text.';
