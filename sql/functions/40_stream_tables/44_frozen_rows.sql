-- Frozen rows: which column says how old a row of a stream table is, and before when rows stay as they are.

-- The same for every session: a day has 24 hours here.
CREATE OR REPLACE FUNCTION pgtrickle_private.frozen_limit(watermark timestamptz, frozen_after interval)
    RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp SET TimeZone = 'UTC'
AS $$
BEGIN
    RETURN watermark - frozen_after;
EXCEPTION WHEN datetime_field_overflow THEN
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.frozen_limit(timestamptz, interval) IS
    'The moment before which rows are frozen once a stream table is complete through a watermark; NULL where there is '
    'none, also because it would be before the first moment that PostgreSQL knows.';

-- PostgreSQL notes beside each output column which column of a table it is, where it is one as it stands. The braces
-- tell the outermost query from those within it: its columns are two deep.
CREATE OR REPLACE FUNCTION pgtrickle_private.column_origin(view regclass, column_number integer, OUT relation regclass,
    OUT origin integer)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
    SELECT f.found[3]::oid::regclass, f.found[4]::integer
    FROM (
        SELECT t.found, sum(CASE t.found[1] WHEN '{' THEN 1 WHEN '}' THEN -1 ELSE 0 END) OVER (ORDER BY t.place)
            AS depth
        FROM pg_rewrite AS r CROSS JOIN LATERAL regexp_matches(r.ev_action::text,
            '((?<!\\)[{}])|:resno (\d+) :resname (?:\\.|[^ \\])+ :ressortgroupref \d+ '
            ':resorigtbl (\d+) :resorigcol (\d+) :resjunk false', 'g') WITH ORDINALITY AS t(found, place)
        WHERE r.ev_class = view AND r.rulename = '_RETURN'
    ) AS f
    WHERE f.depth = 2 AND f.found[2]::integer = column_number
$$;
COMMENT ON FUNCTION pgtrickle_private.column_origin(regclass, integer) IS
    'The relation and the number of its column that a column of a view is, where the view shows it as it stands.';

CREATE OR REPLACE FUNCTION pgtrickle_private.is_event_time(relation regclass, column_number integer,
    seen regclass[] DEFAULT '{}') RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    below record;
BEGIN
    IF relation IS NULL OR relation = ANY (seen) THEN
        RETURN false;
    ELSIF EXISTS (
        SELECT FROM pgt_event_times AS e JOIN pg_attribute AS a ON a.attrelid = e.source_relid
        WHERE e.source_relid = relation AND a.attname = e.column_name AND a.attnum = column_number)
    THEN
        RETURN true;
    END IF;
    -- A stream table has the columns of its query, in the same order.
    SELECT o.* INTO below FROM column_origin(COALESCE((SELECT t.view_relid FROM pgt_stream_tables AS t
        WHERE t.pgt_relid = is_event_time.relation), is_event_time.relation), column_number) AS o;
    RETURN is_event_time(below.relation, below.origin, seen || relation);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.is_event_time(regclass, integer, regclass[]) IS
    'Whether a column is the declared event time of a source, also by way of views and stream tables that show it as '
    'it stands.';

CREATE OR REPLACE FUNCTION pgtrickle_private.frozen_column(view regclass, options pgtrickle.pgt_stream_tables)
    RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    found text[];
BEGIN
    IF options.window_end IS NOT NULL THEN
        PERFORM check_window_end(view, options.window_end);
        RETURN options.window_end;
    END IF;
    found := ARRAY(
        SELECT a.attname FROM pg_attribute AS a
        WHERE a.attrelid = view AND a.attnum > 0 AND a.atttypid = 'timestamptz'::regtype
            AND is_event_time(view, a.attnum)
        ORDER BY a.attnum);
    IF cardinality(found) <> 1 THEN
        PERFORM refuse_value('frozen_after', options.frozen_after::text, CASE WHEN found = '{}'
            THEN 'No column of the query is the event time of a source. Declare it, as timestamptz, with '
                'set_event_time(source, column), and have the query show that column as it stands; or create the '
                'stream table with window_end => the column that says how old a row is.'
            ELSE format('%s are all event times. Create the stream table with window_end => the one that says how old '
                'a row is.', array_to_string(found, ' and ')) END);
    END IF;
    RETURN found[1];
END
$$;
COMMENT ON FUNCTION pgtrickle_private.frozen_column(regclass, pgtrickle.pgt_stream_tables) IS
    'The column that says how old a row of a stream table is; error 22023 where none does, or several do.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_frozen_after(view regclass, options pgtrickle.pgt_stream_tables)
    RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
BEGIN
    IF options.frozen_after IS NULL THEN
        RETURN;
    ELSIF options.output_mode = 'append' THEN
        PERFORM refuse_value('frozen_after', options.frozen_after::text,
            'output_mode => ''append'' never changes what it has emitted: leave frozen_after out.');
    ELSIF options.allow_circular THEN
        PERFORM refuse_value('frozen_after', options.frozen_after::text,
            'Stream tables that read each other must be able to change all their rows: leave allow_circular out.');
    -- The outermost query comes last in what PostgreSQL stores of a view.
    ELSIF EXISTS (SELECT FROM pg_rewrite AS r WHERE r.ev_class = view
        AND '{' IN (substring(r.ev_action::text, '.*:limitCount (\S)'), substring(r.ev_action::text,
            '.*:limitOffset (\S)')))
    THEN
        PERFORM refuse_value('frozen_after', options.frozen_after::text,
            'Rows that LIMIT or OFFSET shows give way to others: leave it out of the outermost query.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_frozen_after(regclass, pgtrickle.pgt_stream_tables) IS
    'Error 22023 where rows of a stream table cannot be frozen.';

CREATE OR REPLACE FUNCTION pgtrickle_private.with_frozen_rows(view regclass, stored pgtrickle.pgt_stream_tables,
    chosen pgtrickle.pgt_stream_tables) RETURNS pgtrickle.pgt_stream_tables
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    filled pgt_stream_tables := chosen;
BEGIN
    PERFORM check_frozen_after(view, chosen);
    IF chosen.frozen_after IS NULL THEN
        filled.frozen_by := NULL;
        filled.frozen_before := NULL;
    ELSE
        filled.frozen_by := COALESCE(stored.frozen_by, frozen_column(view, chosen));
        -- What is frozen stays so under a longer interval. Rows that may be wrong are mended first.
        filled.frozen_before := greatest(stored.frozen_before, CASE WHEN stored.reinitialize_reason IS NULL
            THEN frozen_limit(stored.effective_watermark, chosen.frozen_after) END);
    END IF;
    RETURN filled;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.with_frozen_rows(regclass, pgtrickle.pgt_stream_tables,
    pgtrickle.pgt_stream_tables) IS
    'Chosen options with the column that frozen_after goes by, and the moment before which rows are frozen already.';

-- An order that was frozen and gets another event time is there twice: as it was frozen, and as it is now.
CREATE OR REPLACE FUNCTION pgtrickle_private.follow_frozen_rows(stored pgtrickle.pgt_stream_tables,
    chosen pgtrickle.pgt_stream_tables) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET lock_timeout = '5s'
AS $$
DECLARE
    key CONSTANT regclass := (
        SELECT i.indexrelid FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
        WHERE i.indrelid = stored.pgt_relid AND c.relname = format('pgt_key_%s', stored.pgt_id));
    columns CONSTANT text[] := ARRAY(
        SELECT a.attname FROM pg_index AS i CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
            JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        WHERE i.indexrelid = key ORDER BY k.place);
BEGIN
    IF (stored.frozen_by IS NULL) = (chosen.frozen_by IS NULL) THEN
        RETURN;
    ELSIF chosen.frozen_by IS NULL THEN
        DELETE FROM pgt_late_changes AS l WHERE l.pgt_id = stored.pgt_id;
    END IF;
    IF key IS NOT NULL AND chosen.frozen_by <> ALL (columns) IS NOT FALSE THEN
        EXECUTE format('DROP INDEX %s', key);
    END IF;
    -- An index has up to 32 columns.
    IF key IS NOT NULL AND chosen.frozen_by <> ALL (columns) AND cardinality(columns) < 32 THEN
        EXECUTE format('CREATE UNIQUE INDEX %I ON %s (%s) NULLS NOT DISTINCT', format('pgt_key_%s', stored.pgt_id),
            stored.pgt_relid, (SELECT string_agg(quote_ident(n), ', ') FROM unnest(columns || chosen.frozen_by) AS n));
    END IF;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    RAISE EXCEPTION 'could not lock % within 5 seconds', stored.pgt_relid
        USING ERRCODE = '55P03', CONSTRAINT = 'capture_lock',
              HINT = 'A long transaction reads it, or a refresh of it is under way; try again later.';
END
$$;
COMMENT ON FUNCTION pgtrickle_private.follow_frozen_rows(pgtrickle.pgt_stream_tables, pgtrickle.pgt_stream_tables) IS
    'Where rows begin to be frozen, lets the key of the stream table tell a frozen row from its later state; where '
    'none are any more, empties its ledger, for the next refresh computes everything anew.';

-- What changed rows while they were wrongly frozen is in the sources: only its record goes.
CREATE OR REPLACE FUNCTION pgtrickle_private.thaw_rows(stream_table pgtrickle.pgt_stream_tables, honest timestamptz)
    RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    before CONSTANT timestamptz := frozen_limit(honest, stream_table.frozen_after);
BEGIN
    IF before >= stream_table.frozen_before THEN
        RETURN;
    END IF;
    UPDATE pgt_stream_tables AS t
    SET frozen_before = before, recomputation_asked = true,
        reinitialize_reason = COALESCE(t.reinitialize_reason, 'a watermark that had frozen rows was taken back')
    WHERE t.pgt_id = stream_table.pgt_id;
    DELETE FROM pgt_late_changes AS l
    WHERE l.pgt_id = stream_table.pgt_id AND (before IS NULL OR l.window_end >= before);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.thaw_rows(pgtrickle.pgt_stream_tables, timestamptz) IS
    'Lets rows change again that only a withdrawn watermark had frozen, and has the stream table computed anew.';
