-- What keeps a loader's statement alive after its table's columns changed under the capture functions, which name them.

-- Two columns may have swapped their names, and may do so again before a tick looks.
CREATE OR REPLACE FUNCTION pgtrickle_private.renamed_column(source regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT min(a.attname) FROM pgt_change_tracking AS t CROSS JOIN LATERAL jsonb_each(t.captured_columns) AS c
            JOIN pg_attribute AS a ON a.attrelid = source AND a.attname = c.key AND NOT a.attisdropped
        WHERE t.source_relid = source AND a.attnum <> (c.value ->> 'attnum')::smallint);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.renamed_column(regclass) IS
    'A captured column of a source whose name another column had when its capture began, or NULL.';

-- What is VOLATILE looks at READ COMMITTED through a snapshot of its own, which shows what was committed by now, and
-- locks nothing: a writer of one part does not wait for whoever holds another part.
CREATE OR REPLACE FUNCTION pgtrickle_private.has_types_of(source oid, buffer oid, columns text[]) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN NOT EXISTS (
        SELECT FROM unnest(columns) AS name
            LEFT JOIN pg_attribute AS s ON s.attrelid = source AND s.attname = name AND NOT s.attisdropped
            LEFT JOIN pg_attribute AS b ON b.attrelid = buffer AND b.attname = name AND NOT b.attisdropped
        WHERE (s.atttypid = b.atttypid) IS NOT TRUE);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.has_types_of(oid, oid, text[]) IS
    'Whether a relation has columns of these names, of the types that a change buffer has.';

-- Declared IMMUTABLE so that its answer becomes part of the capture function's plan: PostgreSQL plans that anew
-- whenever a relation named by a regclass constant changes. Under an older snapshot types are compared as the parser
-- resolves them, which knows later changes, but opens the relation; the rest of their definition as the snapshot shows
-- it.
CREATE OR REPLACE FUNCTION pgtrickle_private.capture_fits(source regclass, buffer regclass, columns text[],
    generated text) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    fits boolean := has_types_of(source, buffer, columns);
BEGIN
    IF fits AND current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        EXECUTE (SELECT concat_ws(' AND ', format('SELECT NULL::%s IS NULL AND NULL::%s IS NULL', source, buffer),
            string_agg(
                format('pg_typeof((NULL::%1$s).%3$I) = pg_typeof((NULL::%2$s).%3$I)', source, buffer, name), ' AND '))
            FROM unnest(columns) AS name) INTO fits;
    END IF;
    RETURN fits
        AND (generated IS NULL OR generated = md5((capture_columns(source, columns)).note))
        AND NOT EXISTS (
            SELECT FROM pg_attribute AS s JOIN pg_attribute AS b USING (attname)
            WHERE s.attrelid = source AND b.attrelid = buffer AND attname = ANY (columns)
                AND (s.atttypmod, s.attcollation) <> (b.atttypmod, b.attcollation))
        AND renamed_column(source) IS NULL;
EXCEPTION
    WHEN syntax_error_or_access_rule_violation THEN RETURN false;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.capture_fits(regclass, regclass, text[], text) IS
    'Whether the source still has the captured columns as the change buffer knows them.';

CREATE OR REPLACE FUNCTION pgtrickle_private.capture_fits_call(relation text, buffer text, columns text[],
    generated text) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT format('pgtrickle_private.capture_fits(%s, %L::regclass, %L::text[], %L)', relation,
        to_regclass(buffer)::oid, columns, generated)
$$;
COMMENT ON FUNCTION pgtrickle_private.capture_fits_call(text, text, text[], text) IS
    'The call of capture_fits for a relation given as an expression.';

-- A partition has the columns of its root for as long as it is attached; a child that ceased to inherit may differ.
CREATE OR REPLACE FUNCTION pgtrickle_private.capture_guard(source regclass, buffer text, columns text[]) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT format('IF NOT (%s%s) THEN
        PERFORM pgtrickle_private.note_capture_gap(%s, TG_RELID, ''was written after its columns changed'');
        RETURN NULL;
    END IF;',
        string_agg(capture_fits_call(format('%L::regclass', c.oid), buffer, columns,
                                     CASE WHEN c.oid = source
                                         AND virtual.present THEN md5((capture_columns(source, columns)).note)
                                         END),
                   ' AND ' ORDER BY c.oid) FILTER (WHERE c.oid = source OR NOT c.relispartition),
        CASE WHEN bool_or(c.relispartition AND c.oid <> source) THEN
            format(' AND (TG_RELID IN (%s) OR pg_partition_root(TG_RELID) IS NOT DISTINCT FROM pg_partition_root(%s))',
                   string_agg(c.oid::text, ', ' ORDER BY c.oid) FILTER (WHERE c.oid = source OR NOT c.relispartition),
                       source::oid) END,
        source::oid)
    FROM pg_class AS c CROSS JOIN (
        SELECT EXISTS (SELECT FROM pg_attribute AS a
                       WHERE a.attrelid = source AND a.attgenerated = 'v' AND a.attname = ANY (columns)
                           AND NOT a.attisdropped)) AS virtual(present)
    WHERE c.oid = ANY (capture_relations(source))
$$;
COMMENT ON FUNCTION pgtrickle_private.capture_guard(regclass, text, text[]) IS
    'The statement by which a capture function notes a gap, instead of failing, where it no longer fits its table.';

-- Declared IMMUTABLE as capture_fits is: a child that comes makes PostgreSQL plan anew what names its parent.
CREATE OR REPLACE FUNCTION pgtrickle_private.has_temporary_child(relation regclass) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
                   WHERE i.inhparent = relation AND c.relnamespace = pg_my_temp_schema());
END
$$;
COMMENT ON FUNCTION pgtrickle_private.has_temporary_child(regclass) IS
    'Whether a temporary table of this session inherits from the relation.';

-- An UPDATE or DELETE of the session that created a temporary child goes through to its rows, and the transition tables
-- do not say which are of the child. Partitions have no children.
CREATE OR REPLACE FUNCTION pgtrickle_private.temporary_guard(source regclass) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT COALESCE((
        SELECT format('
    IF TG_OP <> ''INSERT'' AND (%s) THEN
        PERFORM pgtrickle_private.note_capture_gap(%s, TG_RELID, ''was changed together with a temporary child'');
        RETURN NULL;
    END IF;',
            string_agg(format('pgtrickle_private.has_temporary_child(%L::regclass)', c.oid), ' OR ' ORDER BY c.oid),
            source::oid)
        FROM pg_class AS c
        WHERE c.oid = ANY (capture_relations(source)) AND c.relkind = 'r' AND NOT c.relispartition
        HAVING count(*) > 0), '')
$$;
COMMENT ON FUNCTION pgtrickle_private.temporary_guard(regclass) IS
    'The statement by which a capture function notes a gap where it may have been given rows of a temporary child; '
    'empty for a partitioned table.';

CREATE OR REPLACE FUNCTION pgtrickle_private.inherits_anew(relation oid, source oid) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM pgt_change_tracking AS t JOIN pg_inherits AS i ON i.inhrelid <> ALL (t.relations)
            JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE t.source_relid = source AND i.inhparent = relation AND NOT i.inhdetachpending
            AND c.relpersistence <> 't');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.inherits_anew(oid, oid) IS
    'Whether the relation, a source or a part of one, is the parent of a partition or child that was none when capture '
    'of the source was installed.';

-- Declared IMMUTABLE as capture_fits is. An older snapshot may not show who inherits; of partitions PostgreSQL tells
-- whom a statement reaches, but locks them all.
CREATE OR REPLACE FUNCTION pgtrickle_private.has_new_part(relation regclass, source oid) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF inherits_anew(relation, source) THEN
        RETURN true;
    END IF;
    IF current_setting('transaction_isolation') NOT IN ('repeatable read', 'serializable') THEN
        RETURN false;
    END IF;
    RETURN EXISTS (
        SELECT FROM pgt_change_tracking AS t CROSS JOIN LATERAL pg_partition_tree(relation) AS p
        WHERE t.source_relid = source AND p.relid <> ALL (t.relations));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.has_new_part(regclass, oid) IS
    'Whether the relation, a source or a part of one, has a partition or child that it had not when capture of the '
    'source was installed.';

-- A part that is attached, written through its parent, and detached before a tick looks leaves changes of rows that
-- nobody read before, and nobody reads any more.
CREATE OR REPLACE FUNCTION pgtrickle_private.new_part_guard(source regclass) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT COALESCE((
        SELECT format('
    IF %s THEN
        PERFORM pgtrickle_private.note_capture_gap(%s, TG_RELID, ''was changed together with a new part'');
        RETURN NULL;
    END IF;',
            string_agg(format('pgtrickle_private.has_new_part(%L::regclass, %s)', c.oid, source::oid), ' OR '
                ORDER BY c.oid), source::oid)
        FROM pg_class AS c
        WHERE c.oid = ANY (capture_relations(source)) AND (c.relkind = 'p' OR NOT c.relispartition)
        HAVING count(*) > 0), '')
$$;
COMMENT ON FUNCTION pgtrickle_private.new_part_guard(regclass) IS
    'The statement by which a capture function notes a gap where it may have been given rows of a partition or child '
    'that was attached since; empty for a partition without partitions.';

-- PostgreSQL runs the BEFORE TRUNCATE triggers of all tables of a statement before it empties the first. What one of
-- them writes to a table whose rows are logged as deleted already is emptied unseen. Such a write is nested in a
-- trigger.
CREATE OR REPLACE FUNCTION pgtrickle_private.truncated_guard(source regclass) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT format('
    IF pg_trigger_depth() > 1 AND current_setting(''pgtrickle.truncated_%1$s'', true)
        = extract(epoch FROM statement_timestamp())::text THEN
        PERFORM pgtrickle_private.note_capture_gap(%1$s, TG_RELID, ''was written by a trigger while it was truncated'');
        RETURN NULL;
    END IF;', source::oid)
$$;
COMMENT ON FUNCTION pgtrickle_private.truncated_guard(regclass) IS
    'The statement by which a capture function notes a gap where a trigger may write what the statement under way is '
    'about to truncate.';

-- A gap that the writer's snapshot shows may have been settled since, and looking for it would set serializable writers
-- of different tables against each other. Only what this very transaction noted is not noted again, unless it advanced
-- its watermark since: where it is, a setting remembers, which may have been set to anything.
CREATE OR REPLACE FUNCTION pgtrickle_private.note_capture_gap(source oid, relation oid, reason text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    remembered CONSTANT text := format('pgtrickle.gap_%s', source);
    noted CONSTANT text := substring(current_setting(remembered, true) FROM '^[(][0-9]{1,9},[0-9]{1,4}[)]$');
    since CONSTANT jsonb := captured_from();
    place tid;
BEGIN
    IF EXISTS (SELECT FROM pgt_capture_gaps AS g
               WHERE g.ctid = noted::tid AND g.xmin = pg_current_xact_id()::xid AND g.source_relid = source
                   AND g.relation = note_capture_gap.relation::regclass::text
                   AND g.reason = note_capture_gap.reason) THEN
        RETURN;
    END IF;
    INSERT INTO pgt_capture_gaps AS g (source_relid, relation, reason, xid, pos)
        VALUES (source, note_capture_gap.relation::regclass::text, note_capture_gap.reason, (since ->> 'xid')::xid8,
            (since ->> 'pos')::bigint)
        RETURNING g.ctid INTO place;
    PERFORM set_config(remembered, place::text, true);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.note_capture_gap(oid, oid, text) IS
    'Notes that changes of a relation could not be captured; the next tick reinitializes what reads it.';
