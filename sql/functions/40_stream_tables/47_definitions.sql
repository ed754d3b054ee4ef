-- Definitions that are kept beside the code: what one differs in from the database, and how the database is made to
-- follow it.

CREATE OR REPLACE FUNCTION pgtrickle_private.new_options(given jsonb) RETURNS pgtrickle.pgt_stream_tables
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN chosen_options(jsonb_populate_record(NULL::pgt_stream_tables, option_defaults()
        || '{"output_mode": "update", "is_append_only": false, "pooler_compatibility_mode": false, '
            '"orchestration_mode": "MANAGED", "post_refresh_action": "none"}'), given);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.new_options(jsonb) IS
    'The options of a new stream table: those that are given by their names, and defaults.';

CREATE OR REPLACE FUNCTION pgtrickle_private.written_options(t pgtrickle.pgt_stream_tables) RETURNS jsonb
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET IntervalStyle = 'postgres'
AS $$
BEGIN
    RETURN (SELECT COALESCE(jsonb_object_agg(s.argument, s.value), '{}') FROM settings_to_write(t) AS s
            WHERE s.argument <> 'search_path');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.written_options(pgtrickle.pgt_stream_tables) IS
    'The options of a stream table that are not what they are by default, as texts.';

-- A table that stands in for a new stream table lets other definitions read it. It goes with the transaction, which is
-- to be rolled back.
CREATE OR REPLACE FUNCTION pgtrickle_private.compare_definition(name text, query text, given jsonb, search_path text,
    renamed_from text DEFAULT NULL) RETURNS jsonb
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET client_min_messages = warning
AS $$
DECLARE
    id CONSTANT bigint := COALESCE(existing_stream_table(name, search_path),
        existing_stream_table(renamed_from, search_path));
    known CONSTANT pgt_stream_tables := (SELECT t FROM pgt_stream_tables AS t WHERE t.pgt_id = id);
    wanted CONSTANT pgt_stream_tables := new_options(given);
    view regclass;
    target record;
    shown text := qualified_name(relation_named(name, search_path));
BEGIN
    PERFORM check_bulk('pgtrickle.create_stream_table'::regproc, ARRAY[given]);
    view := create_query_view(nextval(pg_get_serial_sequence('pgtrickle.pgt_stream_tables', 'pgt_id')), query,
        search_path);
    PERFORM check_query(view);
    PERFORM check_output_mode(view, wanted);
    PERFORM check_frozen_after(view, wanted);
    PERFORM refuse_differential(required_mode(wanted), full_reason(view));
    IF shown IS NULL OR id IS NULL THEN
        target := new_relation_name(name, search_path);
        shown := format('%I.%I', target.schema_name, target.table_name);
        EXECUTE format('CREATE TABLE %s (%s)', shown, columns_of(view));
    END IF;
    RETURN jsonb_build_object('name', shown, 'pgt_id', id, 'project', known.project,
        'name_now', qualified_name(known.pgt_relid),
        'same_query', pg_get_viewdef(view) = pg_get_viewdef(known.view_relid),
        'path', resolved_search_path(search_path), 'path_now', known.defining_search_path,
        'columns', columns_of(view), 'columns_now', columns_of(known.pgt_relid),
        'options', written_options(wanted), 'options_now', written_options(known),
        'reads', (SELECT COALESCE(jsonb_agg(qualified_name(s.source_relid)), '[]') FROM query_sources(view) AS s));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.compare_definition(text, text, jsonb, text, text) IS
    'What a definition of a stream table would have, and what the stream table of its name, or of an earlier one, has: '
    'query, columns, options, sources. To be called in a transaction that is rolled back.';

CREATE OR REPLACE FUNCTION pgtrickle_private.follow_definition(id bigint, query text, given jsonb, search_path text)
    RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    UPDATE pgt_stream_tables AS t
    SET requested_cdc_mode = NULL, st_partition_key = NULL, max_differential_joins = NULL, max_delta_fraction = NULL,
        target_freshness_mode = NULL, freshness_deadline_ms = NULL
    WHERE t.pgt_id = id;
    PERFORM alter_from(id, query, jsonb_build_object('append_only', false, 'pooler_compatibility_mode', false,
            'orchestration_mode', 'MANAGED') || (given - 'output_mode' - 'window_end' - 'fillfactor'),
        ARRAY(SELECT jsonb_object_keys(option_defaults())), search_path);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.follow_definition(bigint, text, jsonb, text) IS
    'Gives a stream table the options that are given, and to all others their defaults; and the query, unless NULL.';

-- By ALTER TABLE or ALTER SCHEMA. A name that a dropped one is still known by stays taken until that is removed.
CREATE OR REPLACE FUNCTION pgtrickle_private.misnamed()
    RETURNS TABLE (pgt_id bigint, schema_name name, table_name name)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT t.pgt_id, n.nspname, c.relname
    FROM pgt_stream_tables AS t JOIN pg_class AS c ON c.oid = t.pgt_relid JOIN pg_namespace AS n
        ON n.oid = c.relnamespace
    WHERE (t.pgt_schema, t.pgt_name) <> (n.nspname, c.relname) AND NOT EXISTS (
        SELECT FROM pgt_stream_tables AS o WHERE (o.pgt_schema, o.pgt_name) = (n.nspname, c.relname)
            AND NOT EXISTS (SELECT FROM pg_class AS k WHERE k.oid = o.pgt_relid))
$$;
COMMENT ON FUNCTION pgtrickle_private.misnamed() IS
    'The stream tables that are known by another name than their tables have, each with the name of its table.';

-- Of two that exchanged their names one is known by its number for a moment.
CREATE OR REPLACE FUNCTION pgtrickle_private.take_name(id bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    known pgt_stream_tables;
    wanted record;
BEGIN
    SELECT * INTO wanted FROM misnamed() AS m WHERE m.pgt_id = id;
    IF FOUND THEN
        UPDATE pgt_stream_tables AS t SET pgt_name = format('stream table number %s', t.pgt_id)
        WHERE (t.pgt_schema, t.pgt_name) = (wanted.schema_name::text, wanted.table_name::text)
        RETURNING * INTO known;
        IF FOUND THEN
            PERFORM name_query_view(known);
        END IF;
        UPDATE pgt_stream_tables AS t SET pgt_schema = wanted.schema_name, pgt_name = wanted.table_name
        WHERE t.pgt_id = id RETURNING * INTO known;
        PERFORM name_query_view(known);
        UPDATE pgt_dependencies AS d SET source_name = qualified_name(known.pgt_relid)
        WHERE d.source_relid = known.pgt_relid;
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.take_name(bigint) IS
    'Has a stream table known by the name that its table has now; every tick does so.';

CREATE OR REPLACE FUNCTION pgtrickle_private.rename_stream_table(id bigint, name text, search_path text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    target CONSTANT record := new_relation_name(name, search_path);
    relation CONSTANT regclass := (SELECT t.pgt_relid FROM pgt_stream_tables AS t WHERE t.pgt_id = id);
    schema_now CONSTANT text := (SELECT c.relnamespace::regnamespace::text FROM pg_class AS c WHERE c.oid = relation);
BEGIN
    IF schema_now <> quote_ident(target.schema_name) THEN
        EXECUTE format('ALTER TABLE %s SET SCHEMA %I', relation, target.schema_name);
    END IF;
    EXECUTE format('ALTER TABLE %s RENAME TO %I', relation, target.table_name);
    UPDATE pgt_stream_tables AS t SET pgt_schema = target.schema_name, pgt_name = target.table_name
    WHERE t.pgt_id = id;
    PERFORM name_query_view(t) FROM pgt_stream_tables AS t WHERE t.pgt_id = id;
    UPDATE pgt_dependencies AS d SET source_name = qualified_name(relation) WHERE d.source_relid = relation;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.rename_stream_table(bigint, text, text) IS
    'Gives a stream table another name; what reads it goes on reading it.';

-- What takes the place of another one shows its rows in the same commit. Where watermarks decide what may be shown, the
-- first refresh does that; it finds these rows and writes only what differs.
CREATE OR REPLACE FUNCTION pgtrickle_private.show_at_once(id bigint) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    known pgt_stream_tables;
BEGIN
    known := (SELECT t FROM pgt_stream_tables AS t WHERE t.pgt_id = id);
    IF known.output_mode <> 'update' OR (SELECT d.gating FROM gating_decision(id) AS d) <> 'none' THEN
        RETURN false;
    END IF;
    UPDATE pgt_stream_tables AS t SET refresh_xid = pg_current_xact_id() WHERE t.pgt_id = id;
    PERFORM set_config('search_path', known.defining_search_path, true);
    EXECUTE pg_catalog.format('INSERT INTO %s SELECT * FROM %s', known.pgt_relid, known.view_relid);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pgtrickle, pgtrickle_private, pg_temp', true);
    -- Nobody else in this transaction may write the stream table.
    UPDATE pgt_stream_tables AS t SET refresh_xid = NULL WHERE t.pgt_id = id;
    RETURN true;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.show_at_once(bigint) IS
    'Fills a new stream table within the transaction that creates it, unless watermarks decide what it may show; says '
    'whether it did.';
