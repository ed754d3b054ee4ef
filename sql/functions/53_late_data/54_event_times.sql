-- Which column of a source is its event time.

CREATE OR REPLACE FUNCTION pgtrickle_private.check_event_time(source regclass, column_name text, too_late interval,
    time_zone text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    attribute pg_attribute;
BEGIN
    PERFORM check_loader(current_user, source, 'declare the event time of');
    PERFORM refuse_reserved_columns(source);
    SELECT * INTO attribute FROM pg_attribute AS a WHERE a.attrelid = source AND a.attname = column_name
        AND a.attnum > 0 AND NOT a.attisdropped;
    IF column_name IS NULL THEN
        PERFORM refuse_value('column_name', NULL, 'Give the column that says when something happened.');
    ELSIF attribute IS NULL THEN
        RAISE EXCEPTION '% has no column %', source, quote_ident(column_name)
            USING ERRCODE = '42703', CONSTRAINT = 'invalid_argument',
                HINT = 'Give the column that says when something happened.';
    ELSIF attribute.atttypid NOT IN ('timestamptz'::regtype, 'timestamp'::regtype, 'date'::regtype) THEN
        RAISE EXCEPTION 'column % of % is of type %, which is no event time', quote_ident(column_name), source,
            format_type(attribute.atttypid, attribute.atttypmod)
            USING ERRCODE = '42804', CONSTRAINT = 'invalid_argument',
                  HINT = 'Use a column of type timestamptz, or one of type timestamp or date together with time_zone.';
    ELSIF attribute.atttypid = 'timestamptz'::regtype AND time_zone IS NOT NULL THEN
        PERFORM refuse_value('time_zone', time_zone, 'Leave it out: a timestamptz is a moment by itself.');
    ELSIF attribute.atttypid <> 'timestamptz'::regtype
        AND NOT EXISTS (SELECT FROM pg_timezone_names AS z WHERE z.name = time_zone) THEN
        PERFORM refuse_value('time_zone', time_zone, format(
            'Say in which time zone %I is meant, by a name that pg_timezone_names lists: a %s alone is no moment.',
                column_name, attribute.atttypid::regtype));
    ELSIF attribute.attgenerated = 'v' OR attribute.attgenerated <> '' AND too_late IS NOT NULL THEN
        RAISE EXCEPTION 'column % of % is generated, its value is not known when a row comes', quote_ident(column_name),
            source
            USING ERRCODE = '42P17', CONSTRAINT = 'invalid_argument',
                  HINT = CASE attribute.attgenerated WHEN 'v' THEN 'Use a stored column.'
                      ELSE 'Use a column that loaders fill, or leave too_late out.' END;
    ELSIF too_late <= interval '0' OR too_late > interval '1000 years' THEN
        PERFORM refuse_value('too_late', too_late::text,
            'Use an interval longer than zero, and of no more than 1000 years.');
    ELSIF capture_obstacle(source) IS NOT NULL THEN
        RAISE EXCEPTION 'rows of % cannot be judged: it %', source, capture_obstacle(source)
            USING ERRCODE = '42809', CONSTRAINT = 'invalid_argument',
                HINT = 'Declare the event time of a table that loaders fill.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_event_time(regclass, text, interval, text) IS
    'Refuses a declaration of an event time that could not be judged exactly, or by a role that may not insert into '
    'the source.';

CREATE OR REPLACE FUNCTION pgtrickle_private.rows_inserted(source regclass) RETURNS bigint
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT COALESCE(sum(pg_stat_get_tuples_inserted(relid)), 0)::bigint FROM unnest(capture_relations(source)) AS relid
$$;
COMMENT ON FUNCTION pgtrickle_private.rows_inserted(regclass) IS
    'Rows ever inserted into a source, as PostgreSQL''s statistics have it: rolled back ones count, and a reset '
    'starts from zero.';

CREATE OR REPLACE FUNCTION pgtrickle.set_event_time(
        source regclass, column_name name, too_late interval DEFAULT NULL, time_zone text DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET quote_all_identifiers = off
AS $$
#variable_conflict use_column
DECLARE
    kind text;
BEGIN
    PERFORM check_event_time(source, set_event_time.column_name, set_event_time.too_late, set_event_time.time_zone);
    kind := (SELECT a.atttypid::regtype::text FROM pg_attribute AS a WHERE a.attrelid = source
        AND a.attname = set_event_time.column_name);
    INSERT INTO pgt_event_times AS e (source_relid, source_name, column_name, column_type, time_zone, too_late,
        declared_at, declared_by, rows_before)
    VALUES (source, qualified_name(source), set_event_time.column_name, kind, set_event_time.time_zone,
        set_event_time.too_late,
            clock_timestamp(), current_user, rows_inserted(source))
    ON CONFLICT (source_relid) DO UPDATE
    SET source_name = EXCLUDED.source_name, column_name = EXCLUDED.column_name, column_type = EXCLUDED.column_type,
        time_zone = EXCLUDED.time_zone, too_late = EXCLUDED.too_late, declared_by = EXCLUDED.declared_by;
    PERFORM write_event_time(source);
END
$$;
COMMENT ON FUNCTION pgtrickle.set_event_time(regclass, name, interval, text) IS
    'Declares which column of a source is its event time: of type timestamptz, or timestamp or date with the '
    'time_zone in which it is meant; a date lasts until its '
    'end. From then on rows that come below the watermark in force are noted in the late ledger, see late_rows(). '
    'With too_late, rows that are later than that are '
    'kept there instead of in the source, until replay_late_rows() or discard_late_rows(). Replaces what was declared '
    'before. Waits for running writers.';

CREATE OR REPLACE FUNCTION pgtrickle.unset_event_time(source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_loader(current_user, source, 'unset the event time of');
    IF EXISTS (SELECT FROM pgt_event_times AS e WHERE e.source_relid = source) THEN
        PERFORM lock_sources(ARRAY[source], 'ACCESS EXCLUSIVE', '{}');
        PERFORM drop_event_time(source);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.unset_event_time(regclass) IS
    'Stops judging the rows of a source by their event time. Its late rows stay in the ledger. Harmless where none is '
    'declared. Waits for running transactions.';

CREATE OR REPLACE FUNCTION pgtrickle.event_times()
    RETURNS TABLE (source text, column_name text, time_zone text, too_late interval, declared_at timestamptz,
        declared_by text, problem text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT qualified_name(e.source_relid), e.column_name, e.time_zone, e.too_late, e.declared_at, e.declared_by,
           COALESCE(event_time_problem(e), event_time_damage(e))
    FROM pgt_event_times AS e ORDER BY 1
$$;
COMMENT ON FUNCTION pgtrickle.event_times() IS
    'The declared event times of sources. A problem says why late rows may slip by; damage to triggers is set right '
    'by the next tick.';
