-- DROP TABLE of a stream table is noticed at once where that is allowed. An event trigger is a superuser's, and runs a
-- function in sessions of superusers: so it must not be one that somebody else could replace.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname = pgtrickle_private.catalog_owner() AND r.rolsuper)
    THEN
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_event_trigger AS e WHERE e.evtname = 'pgtrickle_drops') THEN
            CREATE EVENT TRIGGER pgtrickle_drops ON sql_drop WHEN TAG IN ('DROP TABLE', 'DROP SCHEMA', 'DROP OWNED')
                EXECUTE FUNCTION pgtrickle_private.notice_drops();
            COMMENT ON EVENT TRIGGER pgtrickle_drops IS
                'Removes what was made for a stream table when that is dropped by DROP TABLE.';
        END IF;
    ELSE
        DROP EVENT TRIGGER IF EXISTS pgtrickle_drops;
    END IF;
EXCEPTION
    -- Then the next tick notices it.
    WHEN insufficient_privilege THEN NULL;
END
$$;
