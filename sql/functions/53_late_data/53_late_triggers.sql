-- The triggers that judge the rows of a source by their event time.

-- A date lasts until its last microsecond: only then is it surely below a watermark. What no time zone can shift
-- without leaving the range of the type must not fail a load.
CREATE OR REPLACE FUNCTION pgtrickle_private.event_time_of(declared pgtrickle.pgt_event_times, item text) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE (declared).column_type WHEN 'timestamp with time zone' THEN value ELSE format(
        'CASE WHEN %1$s >= ''294276-12-30'' THEN ''infinity''::timestamptz WHEN %1$s <= ''4713-01-02 BC'' THEN '
            '''-infinity'' ELSE %2$s END', value,
        format(CASE (declared).column_type WHEN 'date'
            THEN '(%1$s + 1)::timestamp AT TIME ZONE %2$L - interval ''1 microsecond'''
            ELSE '%1$s AT TIME ZONE %2$L' END,
               value, (declared).time_zone)) END
    FROM (SELECT format('%s.%I', item, (declared).column_name)) AS v(value)
$$;
COMMENT ON FUNCTION pgtrickle_private.event_time_of(pgtrickle.pgt_event_times, text) IS
    'Expression for the event time, as a timestamptz, of the row that an item stands for.';

-- Only output functions are run: a cast, to json for instance, may be a function of whoever made the type, and the
-- triggers run with the rights of the owner.
CREATE OR REPLACE FUNCTION pgtrickle_private.row_as_text(source regclass, item text, OUT names text[], OUT image text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT array_agg(a.attname::text ORDER BY a.attname),
           format('jsonb_object(%L, ARRAY[%s]::text[])', array_agg(a.attname::text ORDER BY a.attname),
               string_agg(format(
               'CASE WHEN num_nulls(%1$s.%2$I) = 0 THEN format(''%%s'', %1$s.%2$I) END', item, a.attname), ', '
                   ORDER BY a.attname))
    FROM pg_attribute AS a WHERE a.attrelid = source AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
$$;
COMMENT ON FUNCTION pgtrickle_private.row_as_text(regclass, text) IS
    'Expression for the row that an item stands for as a JSON object of texts, and the names of its columns; without '
    'generated ones.';

-- Declared IMMUTABLE so that its answer becomes part of the trigger's condition: PostgreSQL prepares that once per
-- statement, and no setting that a loader may change has a part in it. Called as the loader, so it must never fail.
CREATE OR REPLACE FUNCTION pgtrickle_private.late_limit(p_event_time_id integer) RETURNS timestamptz
    LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET TimeZone = 'UTC'
AS $$
BEGIN
    RETURN (SELECT w.watermark - e.too_late FROM pgt_event_times AS e JOIN pgt_watermarks AS w USING (source_relid)
            WHERE e.event_time_id = p_event_time_id AND w.watermark > '3000-01-01 BC');
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.late_limit(integer) IS
    'The event time below which rows of a source are kept out now, or NULL.';

-- A failure to judge is no failure of the load.
CREATE OR REPLACE FUNCTION pgtrickle_private.late_functions(declared pgtrickle.pgt_event_times)
    RETURNS TABLE (function_name text, body text)
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET IntervalStyle = 'postgres'
        SET quote_all_identifiers = off
AS $$
DECLARE
    row_text CONSTANT record := row_as_text((declared).source_relid, 'n');
    event_time CONSTANT text := event_time_of(declared, 'n');
    old_event_time CONSTANT text := event_time_of(declared, 'o');
    asserted CONSTANT text := format(
        'SELECT w.watermark, w.source_relid INTO asserted, source FROM pgtrickle.pgt_event_times AS e JOIN '
        'pgtrickle.pgt_watermarks AS w USING (source_relid) '
        'WHERE e.event_time_id = %s AND NOT pgtrickle_private.is_copied()', (declared).event_time_id);
    entry CONSTANT text := format(
        'INSERT INTO pgtrickle.pgt_late_rows (source_relid, event_time, watermark, row_data, arrived_at, arrived_by, '
        'status) '
        'SELECT source, %s, asserted, %s, clock_timestamp(), session_user,', event_time, row_text.image);
    warning CONSTANT text := 'RAISE WARNING ''late rows of % were not noted: %'', TG_RELID::regclass, SQLERRM;';
BEGIN
    RETURN QUERY VALUES
        (format('late_%s', (declared).event_time_id),
         format(late_template(), asserted, event_time, 'pgt_new', entry, 'pgt_old', old_event_time, warning,
             row_text.image)),
        (format('late_row_%s', (declared).event_time_id),
         format(late_template(), asserted, event_time, '(SELECT NEW.*)', entry, '(SELECT OLD.*)', old_event_time, '',
             row_text.image)),
        (format('too_late_%s', (declared).event_time_id),
         format(too_late_template(), asserted, (declared).too_late, (declared).event_time_id,
             event_time_of(declared, 'NEW'), row_text.names, entry)),
        (format('moved_%s', (declared).event_time_id), format(moved_template(), (declared).event_time_id));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.late_functions(pgtrickle.pgt_event_times) IS
    'Names and bodies of the trigger functions that note late rows, and keep out those beyond the limit.';

-- The limit is applied last, to the row as the other BEFORE triggers leave it: they fire in the order of their names.
-- A row on its way to another partition is deleted and inserted. Where a statement inserts other rows as well, as MERGE
-- does, the limit ends with the first row that it deletes: which insert is that of a move, a trigger cannot know.
CREATE OR REPLACE FUNCTION pgtrickle_private.late_triggers(declared pgtrickle.pgt_event_times)
    RETURNS TABLE (relation oid, trigger_name text, definition text, function_name text, cloned boolean)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT c.oid, t.name, format('%s ON %s %s', e.timing, c.oid::regclass, e.clause), e.function_name
        || (declared).event_time_id,
           c.oid <> (declared).source_relid AND c.relispartition AND e.clause LIKE 'FOR EACH ROW%'
    FROM pg_class AS c CROSS JOIN (SELECT capture_mode((declared).source_relid)) AS m(mode) CROSS JOIN LATERAL (VALUES
        ('statement', false, 'pgtrickle_late_insert', 'AFTER INSERT',
            'REFERENCING NEW TABLE AS pgt_new FOR EACH STATEMENT', 'late_'),
        ('statement', false, 'pgtrickle_late_update', 'AFTER UPDATE',
            'REFERENCING OLD TABLE AS pgt_old NEW TABLE AS pgt_new FOR EACH STATEMENT', 'late_'),
        -- Has transition tables show the rows that partitions store; see 20_capture_moved.sql.
        ('statement', false, 'pgtrickle_stored', 'BEFORE INSERT', 'FOR EACH ROW WHEN (false)', 'moved_'),
        ('statement', true, 'pgtrickle_limit', 'BEFORE INSERT', 'FOR EACH STATEMENT', 'moved_'),
        ('statement', true, 'zz_pgtrickle_too_late', 'BEFORE INSERT',
            format('FOR EACH ROW WHEN (%s < pgtrickle_private.late_limit(%s))', event_time_of(declared, 'NEW'),
                (declared).event_time_id), 'too_late_'),
        ('statement', true, 'zz_pgtrickle_moved', 'BEFORE DELETE', 'FOR EACH ROW', 'moved_'),
        ('row', false, 'pgtrickle_late_row', 'AFTER INSERT OR UPDATE', 'FOR EACH ROW', 'late_row_'),
        ('row', true, 'zz_pgtrickle_too_late', 'BEFORE INSERT', 'FOR EACH ROW', 'too_late_')
    ) AS e(mode, limits, name, timing, clause, function_name)
    CROSS JOIN LATERAL (SELECT format('%s_%s', e.name, (declared).event_time_id)) AS t(name)
    WHERE c.oid = ANY (capture_relations((declared).source_relid)) AND e.mode = m.mode
        AND (NOT e.limits OR (declared).too_late IS NOT NULL AND (c.oid = (declared).source_relid OR c.relispartition))
        AND (e.function_name <> 'moved_'
            OR EXISTS (SELECT FROM pg_partitioned_table AS p WHERE p.partrelid = (declared).source_relid))
$$;
COMMENT ON FUNCTION pgtrickle_private.late_triggers(pgtrickle.pgt_event_times) IS
    'Triggers that judge the rows of a source, one row per relation and trigger.';

-- A condition knows a column by its number, and the functions by its name: two columns may exchange their names. Of a
-- trigger that PostgreSQL cloned onto a partition no column is noted.
CREATE OR REPLACE FUNCTION pgtrickle_private.limits_another_column(declared pgtrickle.pgt_event_times, judging oid)
    RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT EXISTS (
        SELECT FROM pg_depend AS d JOIN pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
        WHERE d.classid = 'pg_trigger'::regclass AND d.objid = judging AND d.refclassid = 'pg_class'::regclass
            AND d.refobjsubid > 0 AND a.attname <> (declared).column_name)
$$;
COMMENT ON FUNCTION pgtrickle_private.limits_another_column(pgtrickle.pgt_event_times, oid) IS
    'Whether the condition of a trigger that judges rows is about a column that no longer has the declared name.';

CREATE OR REPLACE FUNCTION pgtrickle_private.event_time_damage(declared pgtrickle.pgt_event_times) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET quote_all_identifiers = off
AS $$
    SELECT COALESCE(
        (SELECT format('trigger %s on %s %s', e.trigger_name, e.relation::regclass,
                       CASE WHEN t.oid IS NULL THEN 'is missing' WHEN t.tgenabled <> 'A' THEN 'was disabled'
                           WHEN limits_another_column(declared, t.oid) THEN 'goes by another column'
                           ELSE 'was replaced' END)
         FROM late_triggers(declared) AS e LEFT JOIN pg_trigger AS t ON t.tgrelid = e.relation
             AND t.tgname = e.trigger_name
         WHERE t.oid IS NULL OR t.tgenabled <> 'A' OR t.tgfoid IS DISTINCT
             FROM to_regproc(format('pgtrickle_changes.%I', e.function_name)) OR limits_another_column(declared, t.oid)
         ORDER BY e.relation, e.trigger_name LIMIT 1),
        (SELECT format('columns of %s changed', (declared).source_relid)
         FROM late_functions(declared) AS f LEFT JOIN pg_proc AS p ON p.proname = f.function_name
             AND p.pronamespace = 'pgtrickle_changes'::regnamespace
         WHERE p.prosrc IS DISTINCT FROM f.body LIMIT 1))
$$;
COMMENT ON FUNCTION pgtrickle_private.event_time_damage(pgtrickle.pgt_event_times) IS
    'What keeps the triggers from judging every row as it is declared, or NULL; the next tick sets it right.';

CREATE OR REPLACE FUNCTION pgtrickle_private.event_time_problem(declared pgtrickle.pgt_event_times) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET quote_all_identifiers = off
AS $$
    SELECT CASE
        WHEN NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = (declared).source_relid) THEN 'it no longer exists'
        WHEN NOT EXISTS (
            SELECT FROM pg_attribute AS a
            WHERE a.attrelid = (declared).source_relid AND a.attname = (declared).column_name AND NOT a.attisdropped
                AND a.atttypid = to_regtype((declared).column_type))
            THEN format('column %I was dropped, renamed or has another type', (declared).column_name)
        ELSE 'it ' || capture_obstacle((declared).source_relid)
    END
$$;
COMMENT ON FUNCTION pgtrickle_private.event_time_problem(pgtrickle.pgt_event_times) IS
    'Why rows can no longer be judged by the declared event time, or NULL. Then declare another, or unset it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.write_event_time(source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    declared pgt_event_times;
    item record;
BEGIN
    PERFORM lock_sources(ARRAY[source], 'SHARE ROW EXCLUSIVE', '{}');
    SELECT * INTO declared FROM pgt_event_times AS e WHERE e.source_relid = source FOR UPDATE;
    FOR item IN SELECT * FROM late_functions(declared) LOOP
        PERFORM write_trigger_function(item.function_name, item.body, 'Judges rows of ' || declared.source_name,
            'SET TimeZone = ''UTC'' SET DateStyle = ''ISO'' SET IntervalStyle = ''postgres'' SET extra_float_digits = '
                '1 '
            'SET bytea_output = ''hex'' SET lc_monetary = ''C''');
    END LOOP;
    FOR item IN
        SELECT t.tgrelid::regclass AS relation, t.tgname FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid
        WHERE p.pronamespace = 'pgtrickle_changes'::regnamespace
            AND p.proname IN (SELECT f.function_name FROM late_functions(declared) AS f)
            AND t.tgparentid = 0 AND NOT EXISTS (
                SELECT FROM late_triggers(declared) AS e WHERE e.relation = t.tgrelid AND e.trigger_name = t.tgname
                    AND NOT e.cloned)
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', item.tgname, item.relation);
    END LOOP;
    FOR item IN SELECT * FROM late_triggers(declared) AS e ORDER BY e.cloned LOOP
        PERFORM write_trigger(item.relation, item.trigger_name, CASE WHEN NOT item.cloned THEN item.definition END,
            item.function_name);
    END LOOP;
    PERFORM admit_partition_makers();
END
$$;
COMMENT ON FUNCTION pgtrickle_private.write_event_time(regclass) IS
    'Creates the functions and triggers that the declared event time of a source asks for, and drops those that it no '
    'longer does.';

CREATE OR REPLACE FUNCTION pgtrickle_private.drop_event_time(source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET client_min_messages = warning
AS $$
DECLARE
    id integer;
    judging regprocedure;
BEGIN
    DELETE FROM pgt_event_times AS e WHERE e.source_relid = source RETURNING e.event_time_id INTO id;
    -- CASCADE: the triggers go with their functions.
    FOR judging IN
        SELECT p.oid FROM pg_proc AS p WHERE p.pronamespace = 'pgtrickle_changes'::regnamespace
            AND p.proname IN (format('late_%s', id), format('late_row_%s', id), format('too_late_%s', id),
                format('moved_%s', id))
    LOOP
        EXECUTE format('DROP FUNCTION %s CASCADE', judging);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.drop_event_time(regclass) IS
    'Drops the declaration of an event time with its functions and triggers.';
