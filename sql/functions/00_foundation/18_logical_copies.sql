-- A database that a subscription copies whole, the catalog included: another server refreshes it, and what refreshes
-- and triggers wrote there arrives as rows. Here nothing does it a second time, and nothing refuses it.

-- The catalog says so itself that it is brought; a session that only takes the role "replica" is no worker, and a
-- subscription that brings a few tables has no catalog. Whoever owns it must be one who may write the catalog.
CREATE OR REPLACE FUNCTION pgtrickle_private.is_copied() RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- By itself, as an expression without a query costs a tenth.
    IF current_setting('session_replication_role') <> 'replica' THEN
        RETURN false;
    END IF;
    RETURN EXISTS (
        SELECT FROM pg_stat_get_subscription(NULL) AS w JOIN pg_subscription_rel AS r ON r.srsubid = w.subid
        WHERE w.pid = pg_backend_pid() AND r.srrelid = 'pgtrickle.pgt_stream_tables'::regclass
            AND (has_table_privilege(session_user, r.srrelid, 'INSERT')
                OR pg_has_role(session_user, pgtrickle_private.catalog_owner(), 'MEMBER')));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.is_copied() IS
    'Whether this session applies what a subscription brings that brings the catalog too.';

CREATE OR REPLACE FUNCTION pgtrickle_private.copying_subscription() RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN CASE WHEN EXISTS (
        SELECT FROM pg_subscription_rel AS r WHERE r.srrelid = 'pgtrickle.pgt_stream_tables'::regclass)
        THEN (SELECT min(s.subname) FROM pg_subscription AS s JOIN pg_subscription_rel AS r ON r.srsubid = s.oid
              WHERE r.srrelid = 'pgtrickle.pgt_stream_tables'::regclass
                  AND (has_table_privilege(s.subowner, r.srrelid, 'INSERT')
                      OR pg_has_role(s.subowner, pgtrickle_private.catalog_owner(), 'MEMBER'))) END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.copying_subscription() IS
    'The name of the subscription by which the catalog is a copy of that on another server, or NULL.';

-- What only refreshes read is made anew when the copy is adopted. Refreshes drop and create some of it, which no
-- subscription brings, so that the rows of before would be in the way; and to delete a row without a key takes a look
-- at all of them. Of any other transaction the first row alone is asked about.
CREATE OR REPLACE FUNCTION pgtrickle_private.leave_copied() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF is_copied() THEN
        RETURN NULL;
    END IF;
    PERFORM set_config('pgtrickle.copied', 'no', true);
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.leave_copied() IS
    'Keeps rows out that a subscription brings which brings the catalog too.';

CREATE OR REPLACE FUNCTION pgtrickle_private.keep_copies_out(relation regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET quote_all_identifiers = off
AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE TRIGGER pgtrickle_copied BEFORE INSERT ON %s FOR EACH ROW '
                   'WHEN (current_setting(''pgtrickle.copied'', true) IS DISTINCT FROM ''no'') '
                   'EXECUTE FUNCTION pgtrickle_private.leave_copied()', relation);
    EXECUTE format('ALTER TABLE %s ENABLE REPLICA TRIGGER pgtrickle_copied', relation);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.keep_copies_out(regclass) IS
    'Leaves a change buffer, or what is kept beside a stream table, empty where a subscription copies the database.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_copied() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    subscription CONSTANT text := copying_subscription();
BEGIN
    IF subscription IS NOT NULL THEN
        RAISE EXCEPTION 'The database is not restored completely yet: the subscription % copies it from another '
            'server.', quote_ident(subscription)
            USING ERRCODE = '55000', CONSTRAINT = 'restore_under_way',
                  HINT = format('There it is refreshed. Once all of it has arrived, and this server is to go on by '
                      'itself: DROP SUBSCRIPTION %I.', subscription);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_copied() IS
    'Error 55000 where a subscription copies the database, the catalog included, from another server.';

-- Logical replication brings no values of sequences. That of positions, change_pos, may begin anew: whoever adopts a
-- cluster voids all that has any.
CREATE OR REPLACE FUNCTION pgtrickle_private.number_rows_onward() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    numbered record;
    highest bigint;
BEGIN
    FOR numbered IN
        SELECT d.objid::regclass AS numbers, a.attrelid::regclass AS relation, a.attname
        FROM pg_depend AS d JOIN pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'
        JOIN pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
        WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
            AND s.relnamespace = 'pgtrickle'::regnamespace
    LOOP
        EXECUTE format('SELECT max(%I) FROM %s', numbered.attname, numbered.relation) INTO highest;
        IF highest > COALESCE(pg_sequence_last_value(numbered.numbers), 0) THEN
            PERFORM setval(numbered.numbers, highest);
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.number_rows_onward() IS
    'Has new rows of the catalog get numbers beyond those that are there, which may have come without their sequences.';
