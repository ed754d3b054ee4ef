-- Everything that is generated belongs to the owner of the catalog, and to nobody else.

CREATE OR REPLACE FUNCTION pgtrickle_private.catalog_owner() RETURNS name
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'pgtrickle'
$$;
COMMENT ON FUNCTION pgtrickle_private.catalog_owner() IS
    'The role that owns the catalog, and everything that is generated.';

-- Default privileges of whoever creates an object may have granted more on it.
CREATE OR REPLACE FUNCTION pgtrickle_private.revoke_all(kind text, object text, owner oid, granted aclitem[])
    RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    stranger oid;
BEGIN
    FOR stranger IN SELECT DISTINCT a.grantee FROM aclexplode(granted) AS a WHERE a.grantee <> owner LOOP
        EXECUTE format('REVOKE ALL ON %s %s FROM %s CASCADE', kind, object,
                       CASE stranger WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(stranger)) END);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.revoke_all(text, text, oid, aclitem[]) IS
    'Takes all that is granted on an object from everybody but its owner.';

CREATE OR REPLACE FUNCTION pgtrickle_private.hand_over(relation regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET quote_all_identifiers = off
AS $$
DECLARE
    made pg_class;
BEGIN
    SELECT * INTO made FROM pg_class WHERE oid = relation;
    IF pg_get_userbyid(made.relowner) <> catalog_owner() THEN
        EXECUTE format('ALTER %s %s OWNER TO %I', CASE made.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, relation,
            catalog_owner());
    END IF;
    -- A stream table lies in a schema of the user, whose default privileges are meant for it.
    IF made.relnamespace::regnamespace::text LIKE 'pgtrickle%' THEN
        SELECT * INTO made FROM pg_class WHERE oid = relation;
        -- Who has a right on columns alone loses it with those on the table.
        PERFORM revoke_all('TABLE', relation::text, made.relowner, array_agg(g.item)) FROM (
            SELECT unnest(made.relacl)
            UNION ALL SELECT unnest(a.attacl) FROM pg_attribute AS a WHERE a.attrelid = relation) AS g(item);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.hand_over(regclass) IS
    'Gives a relation that was made for a stream table to the owner of the catalog and, unless it is the stream table '
    'itself, takes from others what default privileges granted.';

CREATE OR REPLACE FUNCTION pgtrickle_private.hand_over_function(made regprocedure) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    p pg_proc;
BEGIN
    SELECT * INTO p FROM pg_proc WHERE oid = made;
    IF pg_get_userbyid(p.proowner) <> catalog_owner() THEN
        EXECUTE format('ALTER ROUTINE %s OWNER TO %I', made, catalog_owner());
        SELECT * INTO p FROM pg_proc WHERE oid = made;
    END IF;
    PERFORM revoke_all('ROUTINE', made::text, p.proowner, COALESCE(p.proacl, acldefault('f', p.proowner)));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.hand_over_function(regprocedure) IS
    'Gives a function to the owner of the catalog, and takes the right to call it from everybody else.';

CREATE OR REPLACE FUNCTION pgtrickle_private.hand_over_everything() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET quote_all_identifiers = off
AS $$
DECLARE
    item record;
BEGIN
    FOR item IN
        SELECT c.oid, c.relkind FROM pg_class AS c
            WHERE c.relnamespace::regnamespace::text IN ('pgtrickle', 'pgtrickle_changes', 'pgtrickle_state')
            AND c.relkind IN ('r', 'v')
        UNION ALL SELECT t.pgt_relid, 'r' FROM pgt_stream_tables AS t WHERE to_regclass(t.pgt_relid::text) IS NOT NULL
    LOOP
        BEGIN
            PERFORM hand_over(item.oid);
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE WARNING '% belongs to another role than the catalog', item.oid::regclass
                USING HINT = 'Have that role, or a superuser, run: SELECT pgtrickle.settle_grants()';
        END;
    END LOOP;
    FOR item IN SELECT p.oid FROM pg_proc AS p
        WHERE p.pronamespace::regnamespace::text IN ('pgtrickle', 'pgtrickle_changes', 'pgtrickle_private') LOOP
        BEGIN
            PERFORM hand_over_function(item.oid);
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE WARNING '% belongs to another role than the catalog', item.oid::regprocedure
                USING HINT = 'Have that role, or a superuser, run: SELECT pgtrickle.settle_grants()';
        END;
    END LOOP;
    -- A column, domain or typed table of somebody else keeps a type from being altered, a table from gaining a column.
    PERFORM revoke_all('TYPE', t.oid::regtype::text, t.typowner, COALESCE(t.typacl, acldefault('T', t.typowner)))
        FROM pg_type AS t
    WHERE t.typnamespace = 'pgtrickle'::regnamespace AND t.typtype <> 'p' AND t.typelem = 0;
    PERFORM revoke_all('SEQUENCE', c.oid::regclass::text, c.relowner, c.relacl) FROM pg_class AS c
    WHERE c.relnamespace = 'pgtrickle'::regnamespace AND c.relkind = 'S';
    PERFORM revoke_all('SCHEMA', n.nspname, n.nspowner, n.nspacl) FROM pg_namespace AS n
    WHERE n.nspname IN ('pgtrickle', 'pgtrickle_changes', 'pgtrickle_private', 'pgtrickle_sinks', 'pgtrickle_state');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.hand_over_everything() IS
    'Gives all that was made for the catalog to its owner, and takes from others what was granted on it, but for the '
    'staging tables of sinks. What another role must give is named in a warning.';
