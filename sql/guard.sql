-- Run before anything else of an install: nothing in the schemas of a catalog may be trusted that another role made, so
-- nothing in them is read or called here. It is also what pytrickle doctor looks at.
SET LOCAL search_path = pg_catalog, pg_temp;
DO $guard$
DECLARE
    stranger record;
BEGIN
    FOR stranger IN
        WITH ours AS (
            SELECT n.oid, n.nspname, n.nspowner FROM pg_catalog.pg_namespace AS n
            WHERE n.nspname IN ('pgtrickle', 'pgtrickle_changes', 'pgtrickle_private', 'pgtrickle_sinks',
                'pgtrickle_state'))
        SELECT format('the schema %I belongs to %I', o.nspname, pg_get_userbyid(o.nspowner)) AS what,
            o.nspowner AS owner, to_regrole(quote_ident(current_user))::oid AS wanted
        FROM ours AS o
        UNION ALL
        -- Who may create in the database may put an extension into any schema, if a superuser calls the extension
        -- trusted.
        SELECT format('the extension %I in the schema %I belongs to %I', e.extname, o.nspname,
            pg_get_userbyid(e.extowner)), e.extowner, o.nspowner
        FROM ours AS o JOIN pg_catalog.pg_extension AS e ON e.extnamespace = o.oid
        UNION ALL
        SELECT format('the %s %s belongs to %I', x.kind, x.name, pg_get_userbyid(x.owner)), x.owner, o.nspowner
        FROM ours AS o CROSS JOIN LATERAL (
            SELECT 'relation', c.oid::regclass::text, c.relowner FROM pg_catalog.pg_class AS c
                WHERE c.relnamespace = o.oid AND c.relkind NOT IN ('i', 'I', 't')
            UNION ALL SELECT 'function', p.oid::regprocedure::text, p.proowner FROM pg_catalog.pg_proc AS p
                WHERE p.pronamespace = o.oid
            UNION ALL SELECT 'type', t.oid::regtype::text, t.typowner FROM pg_catalog.pg_type AS t
                WHERE t.typnamespace = o.oid
            UNION ALL SELECT 'operator', r.oid::regoperator::text, r.oprowner FROM pg_catalog.pg_operator AS r
                WHERE r.oprnamespace = o.oid
        ) AS x(kind, name, owner)
        UNION ALL
        SELECT format('the trigger %I on %s calls %s of %I', t.tgname, t.tgrelid::regclass, t.tgfoid::regprocedure,
            pg_get_userbyid(p.proowner)), p.proowner, o.nspowner
        FROM ours AS o JOIN pg_catalog.pg_class AS c ON c.relnamespace = o.oid
            JOIN pg_catalog.pg_trigger AS t ON t.tgrelid = c.oid
        JOIN pg_catalog.pg_proc AS p ON p.oid = t.tgfoid
        WHERE NOT t.tgisinternal
    LOOP
        -- A member of the owner is trusted as it is, and what it made is handed over.
        IF stranger.owner <> stranger.wanted
            AND (stranger.what LIKE 'the schema %' OR NOT pg_has_role(stranger.owner, stranger.wanted, 'MEMBER'))
        THEN
            RAISE EXCEPTION '%, not to %', stranger.what, quote_ident(pg_get_userbyid(stranger.wanted))
                USING ERRCODE = '42501', CONSTRAINT = 'foreign_catalog',
                      HINT = CASE WHEN stranger.what LIKE 'the schema %'
                             THEN 'If that role is to own pytrickle, install as it (SET ROLE, or --dsn with '
                                 'options=-crole=...). If not, somebody else made the schema: drop it.'
                             ELSE 'Only the owner of the catalog and its members may have anything in there: drop it, '
                                 'after a look at what it does.' END;
        END IF;
    END LOOP;
END
$guard$;
