-- Creates the group roles of those who have to do with stream tables. Roles belong to the whole cluster: one of the
-- name that is there already might be anybody's, so it is taken only if it is empty.
DO $$
DECLARE
    group_purpose text;
    group_name name;
    whose text;
    former name;
    catalog_owner pg_catalog.pg_roles;
    installer CONSTANT name := current_user;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    -- Roles are created by who is logged in. What belongs to the catalog is called as its owner only (SET ROLE).
    IF NOT (SELECT r.rolsuper OR r.rolcreaterole FROM pg_roles AS r WHERE r.rolname = session_user) THEN
        RAISE EXCEPTION '% may not create roles', quote_ident(session_user)
            USING ERRCODE = '42501', CONSTRAINT = 'insufficient_privilege',
                  HINT = 'Leave the roles out and grant by hand, or have a superuser install them with SET ROLE, as '
                      'by --dsn options=-crole=...';
    END IF;
    SELECT r.* INTO catalog_owner FROM pg_namespace AS n JOIN pg_roles AS r ON r.oid = n.nspowner
        WHERE n.nspname = 'pgtrickle';
    FOREACH group_purpose IN ARRAY ARRAY['reader', 'loader', 'operator', 'owner'] LOOP
        IF pgtrickle_private.group_role(group_purpose) IS NOT NULL THEN
            -- The catalog may have another owner by now, as after REASSIGN OWNED: the group follows it.
            IF group_purpose = 'owner' THEN
                FOR former IN SELECT o.rolname FROM pg_roles AS g JOIN pg_auth_members AS m ON m.member = g.oid
                    JOIN pg_roles AS o ON o.oid = m.roleid
                    WHERE g.rolname = 'pytrickle_owner' AND EXISTS (SELECT pgtrickle_private.outgrown_membership())
                LOOP
                    SET LOCAL ROLE NONE;
                    EXECUTE format('REVOKE %I FROM pytrickle_owner', former);
                    IF NOT catalog_owner.rolsuper THEN
                        EXECUTE format('GRANT %I TO pytrickle_owner', catalog_owner.rolname);
                    END IF;
                    EXECUTE format('SET LOCAL ROLE %I', installer);
                END LOOP;
            END IF;
            CONTINUE;
        END IF;
        group_name := 'pytrickle_' || group_purpose;
        SELECT COALESCE('the member '
            || string_agg(quote_ident(m.rolname), ', ') FILTER (WHERE m.rolname NOT IN (installer, session_user)),
                        CASE WHEN bool_or(r.rolcanlogin OR r.rolsuper OR r.rolcreaterole OR r.rolcreatedb
                            OR r.rolreplication OR r.rolbypassrls)
                             THEN 'rights of its own' END,
                        CASE WHEN bool_or(EXISTS (SELECT FROM pg_auth_members AS u WHERE u.member = r.oid))
                            THEN 'the rights of other roles' END)
        INTO whose
        FROM pg_roles AS r LEFT JOIN pg_auth_members AS a ON a.roleid = r.oid
            LEFT JOIN pg_roles AS m ON m.oid = a.member
        WHERE r.rolname = group_name;
        IF whose IS NOT NULL THEN
            RAISE EXCEPTION 'there is a role % already, with %', group_name, whose
                USING ERRCODE = '42710', CONSTRAINT = 'group_role_exists',
                      HINT = 'Whoever has it would get new rights: take that away or drop the role, then install the '
                          'roles again.';
        END IF;
        BEGIN
            SET LOCAL ROLE NONE;
            IF to_regrole(group_name::text) IS NULL THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', group_name);
            END IF;
            IF group_purpose = 'owner' THEN
                -- A member of a superuser could become one.
                IF catalog_owner.rolsuper THEN
                    RAISE insufficient_privilege;
                END IF;
                EXECUTE format('GRANT %I TO %I', catalog_owner.rolname, group_name);
            END IF;
            EXECUTE format('SET LOCAL ROLE %I', installer);
            INSERT INTO pgtrickle.pgt_group_roles (purpose, role_name, role_oid)
            SELECT group_purpose, r.rolname, r.oid FROM pg_roles AS r WHERE r.rolname = group_name
            ON CONFLICT (purpose) DO UPDATE SET role_oid = EXCLUDED.role_oid;
        EXCEPTION
            WHEN insufficient_privilege OR invalid_grant_operation THEN
                IF group_purpose <> 'owner' THEN
                    RAISE;
                END IF;
                RAISE NOTICE 'the role % was left out', group_name
                    USING CONSTRAINT = 'group_role_left_out', HINT = CASE WHEN catalog_owner.rolsuper
                        THEN format('The catalog belongs to %I, a superuser, and a member of that could become one.',
                            catalog_owner.rolname)
                        ELSE format('Only a superuser may have it share the rights of %I.', catalog_owner.rolname) END;
        END;
    END LOOP;
    PERFORM pgtrickle_private.grant_to_groups();
END
$$;
