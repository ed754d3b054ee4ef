-- Who may speak for a source without being allowed to insert into it.

CREATE OR REPLACE FUNCTION pgtrickle_private.check_source_owner(caller name, source regclass, role text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_owner(caller, source, 'say who loads');
    IF role IS NULL OR to_regrole(quote_ident(role)) IS NULL THEN
        PERFORM refuse_value('role', role, 'Name a role that exists.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_source_owner(name, regclass, text) IS
    'Refuses what only the owner of a source, or of the catalog, may say about a role.';

CREATE OR REPLACE FUNCTION pgtrickle_private.allow_loader(caller name, source regclass, role text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_source_owner(caller, source, role);
    INSERT INTO pgt_loaders (source_relid, loader, source_name, granted_by)
        VALUES (source, role, qualified_name(source), caller) ON CONFLICT DO NOTHING;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.allow_loader(name, regclass, text) IS
    'Lets a role speak for a source, for its caller.';

CREATE OR REPLACE FUNCTION pgtrickle_private.disallow_loader(caller name, source regclass, role text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_source_owner(caller, source, role);
    DELETE FROM pgt_loaders AS l WHERE l.source_relid = source AND l.loader = role;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.disallow_loader(name, regclass, text) IS
    'Ends that a role may speak for a source, for its caller.';

CREATE OR REPLACE FUNCTION pgtrickle.grant_loader(source regclass, role name) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    INSERT INTO pgt_calls (call, source, arguments) VALUES ('grant_loader', source, jsonb_build_object('role', role));
END
$$;
COMMENT ON FUNCTION pgtrickle.grant_loader(regclass, name) IS
    'Lets a role, and its members, speak for a source without being allowed to insert into it: advance its watermark, '
    'gate it, mark it idle, commit batches of a '
    'sink. For orchestrators, and for loaders that may insert into some columns only. For the owner of the source or '
    'of the catalog.';

CREATE OR REPLACE FUNCTION pgtrickle.grant_loader(
        source text, role text, search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM grant_loader(source_named(source, search_path), role::name);
END
$$;
COMMENT ON FUNCTION pgtrickle.grant_loader(text, text, text) IS
    'The same for a source that comes by its name, as text.';

CREATE OR REPLACE FUNCTION pgtrickle.revoke_loader(source regclass, role name) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    INSERT INTO pgt_calls (call, source, arguments) VALUES ('revoke_loader', source, jsonb_build_object('role', role));
END
$$;
COMMENT ON FUNCTION pgtrickle.revoke_loader(regclass, name) IS
    'Takes back what grant_loader() gave; who may insert into the source may still speak for it. Harmless where there '
    'is nothing to take.';

CREATE OR REPLACE FUNCTION pgtrickle.revoke_loader(
        source text, role text, search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM revoke_loader(source_named(source, search_path), role::name);
END
$$;
COMMENT ON FUNCTION pgtrickle.revoke_loader(text, text, text) IS
    'The same for a source that comes by its name, as text.';
