-- The table that holds the rows of a stream table, and what keeps it as its refreshes left it.

CREATE OR REPLACE FUNCTION pgtrickle_private.guard_stream_table() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pgt_stream_tables WHERE pgt_relid = TG_RELID
        AND refresh_xid = pg_current_xact_id_if_assigned()) AND NOT is_copied() THEN
        RAISE EXCEPTION '% is a stream table, only its refresh may change it', TG_RELID::regclass
            USING ERRCODE = '55000', CONSTRAINT = 'stream_table_read_only',
                  HINT = 'Change the tables its defining query reads.';
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.guard_stream_table() IS
    'Refuses (55000) writes to a stream table other than by its refresh, be it that of the server of which this '
    'database is a copy.';

-- What a subscription brings fires the triggers of rows only, in a session of the role "replica". There alone the
-- second trigger fires, so that a refresh does not pay for it.
CREATE OR REPLACE FUNCTION pgtrickle_private.guard_relation(storage regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE TRIGGER pgtrickle_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s '
                   'FOR EACH STATEMENT EXECUTE FUNCTION pgtrickle_private.guard_stream_table()', storage);
    EXECUTE format('CREATE OR REPLACE TRIGGER pgtrickle_guard_rows BEFORE INSERT OR UPDATE OR DELETE ON %s '
                   'FOR EACH ROW EXECUTE FUNCTION pgtrickle_private.guard_stream_table()', storage);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER pgtrickle_guard, ENABLE REPLICA TRIGGER pgtrickle_guard_rows',
        storage);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.guard_relation(regclass) IS
    'Has every write to a stream table refused that is not of its refresh.';

-- A statement that names a parent fires no trigger of the statements of its children. What restores rows alone, as
-- pg_restore does, disables all triggers of a table and enables them again, but no longer as they were.
CREATE OR REPLACE FUNCTION pgtrickle_private.unguarded() RETURNS SETOF bigint
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT s.pgt_id FROM pgt_stream_tables AS s JOIN pg_class AS c ON c.oid = s.pgt_relid
    WHERE (SELECT count(*) FROM pg_trigger AS g
        WHERE g.tgrelid = c.oid AND g.tgfoid = 'pgtrickle_private.guard_stream_table'::regproc
            AND (g.tgenabled = 'A' AND g.tgname IN ('pgtrickle_guard', 'pgtrickle_guard_rows')
                OR g.tgenabled = 'R' AND g.tgname = 'pgtrickle_guard_rows'
                    AND NOT EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = c.oid))) < 2
$$;
COMMENT ON FUNCTION pgtrickle_private.unguarded() IS
    'Stream tables that can be written: through a table of which they are a partition or a child, or since somebody '
    'altered the triggers that guard them.';

CREATE OR REPLACE FUNCTION pgtrickle_private.guard_every_row(id bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    storage CONSTANT regclass := (SELECT s.pgt_relid FROM pgt_stream_tables AS s WHERE s.pgt_id = id);
BEGIN
    PERFORM guard_relation(storage);
    IF EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = storage) THEN
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER pgtrickle_guard_rows', storage);
        PERFORM mark_reinitialize(id,
            'it became a partition or child of another table, through which it may have been written');
    ELSE
        PERFORM mark_reinitialize(id, 'the triggers that guard it were altered, so that it may have been written');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.guard_every_row(bigint) IS
    'Has writes to a stream table refused again, of a partition or child row by row, and has it computed anew once.';

-- What is kept beside the rows counts too: groups, and the rows below a LIMIT. Nothing else tells what a crash took
-- there.
CREATE OR REPLACE FUNCTION pgtrickle_private.unlogged_storage() RETURNS TABLE (pgt_id bigint, relation regclass)
    LANGUAGE sql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT s.pgt_id, c.oid FROM pg_class AS c JOIN pgt_stream_tables AS s ON c.oid = s.pgt_relid
        OR (c.relnamespace = 'pgtrickle_state'::regnamespace AND c.oid IN (SELECT kept_beside(s.pgt_id)))
    WHERE c.relpersistence = 'u' AND c.relkind = 'r'
$$;
COMMENT ON FUNCTION pgtrickle_private.unlogged_storage() IS
    'What holds rows of a stream table, or what is kept beside them, and is unlogged, so that a crash empties it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.log_storage(id bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    stored regclass;
BEGIN
    FOR stored IN SELECT u.relation FROM unlogged_storage() AS u WHERE u.pgt_id = id LOOP
        EXECUTE format('ALTER TABLE %s SET LOGGED', stored);
    END LOOP;
    PERFORM mark_reinitialize(id, 'its table was unlogged, a crash may have emptied it');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.log_storage(bigint) IS
    'Makes what holds the rows of a stream table logged again, and has it computed anew.';

-- What a refresh reads there is not compared with anything, so that a row that is missing would make it wrong.
CREATE OR REPLACE FUNCTION pgtrickle_private.guard_kept_table() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pgt_stream_tables AS s WHERE s.refresh_xid = pg_current_xact_id_if_assigned()
        AND TG_RELID IN (SELECT kept_beside(s.pgt_id))) AND NOT is_copied() THEN
        RAISE EXCEPTION '% is kept beside a stream table, only refreshes may change it', TG_RELID::regclass
            USING ERRCODE = '55000', CONSTRAINT = 'stream_table_read_only',
                  HINT = 'To have it made anew: SELECT pgtrickle.reinitialize_stream_table(name).';
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.guard_kept_table() IS
    'Refuses (55000) writes to what is kept beside a stream table other than by its refresh.';

-- The sessions of refreshers are told by their name, which costs a microsecond; all others have to call a function.
CREATE OR REPLACE FUNCTION pgtrickle_private.guard_kept(kept regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET quote_all_identifiers = off SET standard_conforming_strings = on
AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE TRIGGER pgtrickle_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s '
                   'FOR EACH STATEMENT WHEN (NOT starts_with(current_setting(''application_name''), ''pytrickle/'')) '
                   'EXECUTE FUNCTION pgtrickle_private.guard_kept_table()', kept);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER pgtrickle_guard', kept);
    PERFORM keep_copies_out(kept);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.guard_kept(regclass) IS
    'Has every write to what is kept beside a stream table refused that is not of a refresher.';

CREATE OR REPLACE FUNCTION pgtrickle_private.create_storage(schema_name text, table_name text, view regclass)
    RETURNS regclass
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    storage CONSTANT text := format('%I.%I', schema_name, table_name);
BEGIN
    EXECUTE format('CREATE TABLE %s (%s)', storage, columns_of(view));
    EXECUTE format('COMMENT ON TABLE %s IS %L', storage,
        'Stream table, kept up to date by pytrickle. Its rows cannot be changed directly.');
    PERFORM guard_relation(storage);
    IF NOT (has_schema_privilege(catalog_owner(), schema_name, 'USAGE')
        AND has_schema_privilege(catalog_owner(), schema_name, 'CREATE')) THEN
        RAISE EXCEPTION 'stream tables belong to %, which may not create tables in the schema %',
            quote_ident(catalog_owner()), quote_ident(schema_name)
            USING ERRCODE = '42501', CONSTRAINT = 'insufficient_privilege',
                  HINT = format('GRANT USAGE, CREATE ON SCHEMA %I TO %I.', schema_name, catalog_owner());
    END IF;
    PERFORM hand_over(storage::regclass);
    RETURN storage::regclass;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.create_storage(text, text, regclass) IS
    'Creates the table that holds the rows: the columns of the defining query, those of domains with the types below '
    'them, guarded against direct writes.';
