-- Installing and extending capture.

-- A subtransaction that fails gives its locks back. Waiting less than deadlock_timeout means that we, not a loader,
-- give way when a loader takes the same locks in another order.
CREATE OR REPLACE FUNCTION pgtrickle_private.try_lock(sources regclass[], lock_mode text, buffers text[])
    RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET lock_timeout = '400ms'
AS $$
DECLARE
    relation text;
BEGIN
    FOREACH relation IN ARRAY sources::text[] LOOP
        EXECUTE format('LOCK TABLE %s IN %s MODE', relation, lock_mode);
    END LOOP;
    FOREACH relation IN ARRAY buffers LOOP
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', relation);
    END LOOP;
    RETURN true;
EXCEPTION
    WHEN lock_not_available OR deadlock_detected THEN RETURN false;
    -- One was dropped or renamed meanwhile, or its schema. A source that is gone before its name is read is written as
    -- its number, which is no name.
    WHEN undefined_table OR invalid_schema_name OR syntax_error THEN RETURN false;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.try_lock(regclass[], text, text[]) IS
    'Locks all these sources and their change buffers, or none of them.';

CREATE OR REPLACE FUNCTION pgtrickle_private.lock_sources(sources regclass[], lock_mode text, buffers text[])
    RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    present regclass[];
    existing text[];
    patience interval := COALESCE(NULLIF(current_setting('lock_timeout')::interval, '0'), '5 minutes');
    started CONSTANT timestamptz := clock_timestamp();
BEGIN
    LOOP
        -- An older snapshot would show in pg_class what was there then. This answers NULL for what is not there now.
        present := ARRAY(SELECT s FROM unnest(sources) AS s WHERE has_table_privilege(s, 'SELECT') IS NOT NULL
            ORDER BY s::oid);
        existing := ARRAY(SELECT buffer FROM unnest(buffers) AS buffer
            WHERE to_regclass(buffer) IS NOT NULL ORDER BY buffer);
        EXIT WHEN try_lock(present, lock_mode, existing);
        IF clock_timestamp() > started + patience THEN
            RAISE EXCEPTION 'could not lock % within %', array_to_string(present, ', '), written_interval(patience)
                USING ERRCODE = '55P03', CONSTRAINT = 'capture_lock',
                      HINT = 'A long transaction is using one of these tables; end it, or try again later.';
        END IF;
        PERFORM pg_sleep(0.05);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.lock_sources(regclass[], text, text[]) IS
    'Waits until no transaction holds a conflicting lock on the sources and buffers, then locks them all. Gives up '
    'after lock_timeout, or 5 minutes.';

CREATE OR REPLACE FUNCTION pgtrickle_private.buffers_to_extend(source regclass, columns text[]) RETURNS text[]
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT ARRAY(SELECT buffer FROM pgt_change_tracking WHERE source_relid = source AND NOT captured_columns ?& columns)
$$;
COMMENT ON FUNCTION pgtrickle_private.buffers_to_extend(regclass, text[]) IS
    'The change buffer of the source if it lacks one of these columns.';

CREATE OR REPLACE FUNCTION pgtrickle_private.create_buffer(source regclass) RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET client_min_messages = warning
AS $$
DECLARE
    buffer CONSTANT text := format('pgtrickle_changes.changes_%s', source::oid);
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %s', buffer);
    -- The weight comes last, or six bytes of padding would follow it.
    EXECUTE format(
        'CREATE TABLE %s (pgt_xid xid8, pgt_pos bigint, pgt_lsn pg_lsn, '
        'pgt_at timestamptz DEFAULT clock_timestamp(), pgt_weight smallint)', buffer);
    -- As an event trigger may do to every new table: no loader could write a change then.
    IF EXISTS (SELECT FROM pg_class AS c WHERE c.oid = buffer::regclass AND c.relrowsecurity) THEN
        EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY', buffer);
    END IF;
    EXECUTE format('COMMENT ON TABLE %s IS %L', buffer, 'Change buffer of ' || qualified_name(source));
    PERFORM keep_copies_out(buffer::regclass);
    PERFORM hand_over(buffer::regclass);
    INSERT INTO pgt_change_tracking (source_relid, source_name, buffer, capture_mode, captured_columns, relations)
    VALUES (source, qualified_name(source), buffer, capture_mode(source), '{}', capture_relations(source));
    RETURN buffer;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.create_buffer(regclass) IS 'Creates an empty change buffer and its tracking row.';

CREATE OR REPLACE FUNCTION pgtrickle_private.write_trigger_function(function_name text, body text, remark text,
    settings text DEFAULT '') RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION pgtrickle_changes.%I() RETURNS trigger LANGUAGE plpgsql SECURITY '
        'DEFINER '
                   'SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp %s AS %L', function_name,
                       settings, body);
    EXECUTE format('COMMENT ON FUNCTION pgtrickle_changes.%I() IS %L', function_name, remark);
    PERFORM hand_over_function(format('pgtrickle_changes.%I()', function_name)::regprocedure);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.write_trigger_function(text, text, text, text) IS
    'Creates a trigger function that runs with the rights of the owner and nobody else can use.';

DROP FUNCTION IF EXISTS pgtrickle_private.write_trigger(oid, text, text, text);
CREATE OR REPLACE FUNCTION pgtrickle_private.write_trigger(relation oid, trigger_name text, definition text,
    function_name text, fires "char" DEFAULT 'A') RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF definition IS NOT NULL THEN
        EXECUTE format('CREATE OR REPLACE TRIGGER %I %s EXECUTE FUNCTION pgtrickle_changes.%I()', trigger_name,
            definition, function_name);
    END IF;
    EXECUTE format('ALTER TABLE %s ENABLE %s TRIGGER %I', relation::regclass,
        CASE fires WHEN 'A' THEN 'ALWAYS' WHEN 'R' THEN 'REPLICA' ELSE '' END, trigger_name);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.write_trigger(oid, text, text, text, "char") IS
    'Creates a trigger that fires in all sessions (A), in those of the role "replica" (R) or in all others (O), or '
    'makes one so that PostgreSQL cloned; that has no definition.';

CREATE OR REPLACE FUNCTION pgtrickle_private.stamp_capture(source regclass) RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    UPDATE pgt_change_tracking AS t SET trigger_stamp = capture_stamp(source, t.capture_mode)
        WHERE t.source_relid = source
$$;
COMMENT ON FUNCTION pgtrickle_private.stamp_capture(regclass) IS
    'Remembers what the capture triggers of a source look like now.';

-- Whoever writes the triggers anew would otherwise hide what happened to them before.
CREATE OR REPLACE FUNCTION pgtrickle_private.keep_capture_problem(source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    problem CONSTANT text := capture_problem(source);
BEGIN
    IF problem IS NOT NULL AND NOT EXISTS (SELECT FROM pgt_capture_gaps AS g WHERE g.source_relid = source) THEN
        PERFORM note_capture_gap(source, source, 'was not captured throughout: ' || problem);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.keep_capture_problem(regclass) IS
    'Notes what is wrong with capture of a source as a gap, for the next tick to repair.';

CREATE OR REPLACE FUNCTION pgtrickle_private.write_capture_functions(tracking pgtrickle.pgt_change_tracking)
    RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    item record;
BEGIN
    FOR item IN SELECT * FROM capture_functions(tracking.source_relid, tracking.buffer,
        ARRAY(SELECT jsonb_object_keys(tracking.captured_columns))) LOOP
        -- The later of two paths counts. PostgreSQL looks up every schema of the path at every call, which a writer of
        -- single rows notices; the body names all that is not PostgreSQL's own in full.
        PERFORM write_trigger_function(item.function_name, item.body, 'Captures changes of ' || tracking.source_name,
            'SET search_path = pg_catalog, pg_temp');
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.write_capture_functions(pgtrickle.pgt_change_tracking) IS
    'Creates the capture functions of a source, or writes them anew, which makes each session plan them anew.';

CREATE OR REPLACE FUNCTION pgtrickle_private.write_capture(source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    tracking pgt_change_tracking;
    item record;
BEGIN
    UPDATE pgt_change_tracking
    SET source_name = qualified_name(source), capture_mode = capture_mode(source), relations = capture_relations(source)
    WHERE source_relid = source RETURNING * INTO tracking;
    PERFORM write_capture_functions(tracking);
    -- Whoever may write to many partitions does not wait for triggers that are there already.
    FOR item IN
        SELECT e.* FROM capture_triggers(source, tracking.capture_mode) AS e
        WHERE NOT EXISTS (
            SELECT FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid
            WHERE t.tgrelid = e.relation AND t.tgname = e.trigger_name AND t.tgenabled = e.fires
                AND (t.tgqual IS NOT NULL) = (e.definition LIKE '%WHEN (%') AND t.tgattr = ''
                AND p.proname = e.function_name
                AND p.pronamespace = 'pgtrickle_changes'::regnamespace)
        ORDER BY e.cloned
    LOOP
        PERFORM write_trigger(item.relation, item.trigger_name, CASE WHEN NOT item.cloned THEN item.definition END,
            item.function_name, item.fires);
    END LOOP;
    PERFORM admit_partition_makers();
    PERFORM stamp_capture(source);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.write_capture(regclass) IS
    'Creates the capture functions and triggers that the tracking row asks for.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_reserved_columns(source regclass) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    reserved text;
BEGIN
    SELECT attname INTO reserved FROM pg_attribute
    WHERE attrelid = source AND attname IN
        ('pgt_weight', 'pgt_xid', 'pgt_pos', 'pgt_lsn', 'pgt_at', 'pgt_text', 'pgt_before', 'pgt_sign', 'pgt_net',
            'pgt_copy')
            AND NOT attisdropped;
    IF FOUND THEN
        RAISE EXCEPTION 'column % of % has a name that refreshes need for themselves', quote_ident(reserved), source
            USING ERRCODE = '42701', CONSTRAINT = 'query_refused',
                  HINT = 'Rename the column: names that begin with pgt_ may be reserved.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_reserved_columns(regclass) IS
    'Error 42701 if a column of the source is or view is named like a bookkeeping column.';

-- Nobody else can write between the installation and the end of its transaction. But a transaction whose snapshot is
-- older than the installation may not see what others wrote before it, which was not captured: then the buffer does not
-- hold all that its own cuts leave out.
CREATE OR REPLACE FUNCTION pgtrickle_private.captured_from() RETURNS jsonb
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT jsonb_build_object('xid', pg_current_xact_id()::text, 'pos',
        CASE WHEN current_setting('transaction_isolation') IN ('read committed', 'read uncommitted')
            THEN nextval('pgtrickle.change_pos') END)
$$;
COMMENT ON FUNCTION pgtrickle_private.captured_from() IS
    'This transaction, and this position in it: its later cuts of what is captured from now on can be read. Without a '
    'position where they cannot.';

CREATE OR REPLACE FUNCTION pgtrickle_private.install_capture(source regclass, columns text[]) RETURNS pgtrickle.cut
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    captured jsonb;
    buffer text;
    added text;
    since cut;
BEGIN
    PERFORM refuse_reserved_columns(source);
    columns := with_columns_below(source, columns);
    PERFORM lock_sources(ARRAY[source], 'SHARE ROW EXCLUSIVE', buffers_to_extend(source, columns));
    SELECT t.captured_columns, t.buffer INTO captured, buffer FROM pgt_change_tracking AS t
        WHERE source_relid = source FOR UPDATE;
    IF NOT FOUND THEN
        buffer := create_buffer(source);
        captured := '{}';
    ELSE
        PERFORM keep_capture_problem(source);
    END IF;
    FOR added IN
        SELECT a.attname FROM pg_attribute AS a
        WHERE a.attrelid = source AND a.attname = ANY (columns) AND NOT captured ? a.attname
        ORDER BY a.attgenerated = 'v', a.attnum
    LOOP
        PERFORM add_to_buffer(source, buffer, added);
        captured := captured || jsonb_build_object(added, captured_from() || jsonb_build_object('attnum', (
            SELECT a.attnum FROM pg_attribute AS a WHERE a.attrelid = source AND a.attname = added)));
    END LOOP;
    UPDATE pgt_change_tracking AS t SET captured_columns = captured WHERE source_relid = source;
    PERFORM write_capture(source);
    -- Without columns any time since the installation will do; the earliest one known is that of a column.
    since := (
        SELECT c.since
        FROM (SELECT key = ANY (columns) AS used, jsonb_populate_record(NULL::cut, value) AS since
            FROM jsonb_each(captured)) AS c
        WHERE c.used OR columns = '{}'
        ORDER BY CASE WHEN c.used THEN (c.since).xid END DESC, CASE WHEN c.used THEN (c.since).pos END DESC,
            (c.since).xid, (c.since).pos LIMIT 1);
    RETURN COALESCE(since, jsonb_populate_record(NULL::cut, captured_from()));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.install_capture(regclass, text[]) IS
    'Captures these columns of the source from now on, beside those already captured. Returns the transaction, and '
    'the position in it, since which all of them are.';
