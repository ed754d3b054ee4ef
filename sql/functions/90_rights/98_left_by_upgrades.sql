-- What an upgrade could not do to objects of other roles: each of them does it, or has it done, later.

-- An upgrade left them for trigger functions that it could not write.
CREATE OR REPLACE FUNCTION pgtrickle_private.drop_idle_copies() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
DECLARE
    idle regprocedure;
BEGIN
    FOR idle IN
        SELECT c.oid FROM pg_proc AS c JOIN pg_proc AS p USING (proname, proargtypes)
        WHERE c.pronamespace = 'pgtrickle'::regnamespace AND p.pronamespace = 'pgtrickle_private'::regnamespace
            AND NOT EXISTS (SELECT FROM pg_proc AS g WHERE g.pronamespace = 'pgtrickle_changes'::regnamespace
                            AND g.prosrc ~ format('\mpgtrickle\.%s\(', c.proname))
    LOOP
        EXECUTE format('DROP FUNCTION %s', idle);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.drop_idle_copies() IS
    'Drops copies of private functions that no generated trigger function calls any more.';

-- An upgrade could not alter the buffers of other roles.
CREATE OR REPLACE FUNCTION pgtrickle_private.add_change_clocks() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    buffer regclass;
BEGIN
    FOR buffer IN
        SELECT c.oid FROM pgt_change_tracking AS k JOIN pg_class AS c ON c.oid = to_regclass(k.buffer)
        WHERE pg_has_role(c.relowner, 'USAGE') AND NOT EXISTS (
            SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'pgt_at' AND NOT a.attisdropped)
    LOOP
        EXECUTE format('ALTER TABLE %s ADD COLUMN pgt_at timestamptz', buffer);
        EXECUTE format('ALTER TABLE %s ALTER COLUMN pgt_at SET DEFAULT clock_timestamp()', buffer);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.add_change_clocks() IS
    'Lets those change buffers note when changes come that do not yet.';

-- Earlier versions made them without a guard.
CREATE OR REPLACE FUNCTION pgtrickle_private.guard_kept_tables() RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT guard_kept(c.oid) FROM pgt_stream_tables AS s, kept_beside(s.pgt_id) AS k JOIN pg_class AS c ON c.oid = k
    WHERE pg_has_role(c.relowner, 'USAGE') AND NOT EXISTS (
        SELECT FROM pg_trigger AS g WHERE g.tgrelid = c.oid AND g.tgname = 'pgtrickle_guard')
$$;
COMMENT ON FUNCTION pgtrickle_private.guard_kept_tables() IS
    'Guards what is kept beside stream tables and is not guarded yet.';
