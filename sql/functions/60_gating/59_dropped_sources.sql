-- Sources of watermark groups that were dropped: they are named, forgotten, or taken over by a table of the same name.

CREATE OR REPLACE FUNCTION pgtrickle_private.dropped_sources(p_group_id integer DEFAULT NULL)
    RETURNS TABLE (source regclass, name text, group_name text, group_id integer)
    LANGUAGE plpgsql STABLE ROWS 1 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT m.source, COALESCE(m.name, m.source::oid::text), g.group_name, g.group_id
    FROM pgt_watermark_groups AS g CROSS JOIN unnest(g.sources, g.source_names) AS m (source, name)
    WHERE (p_group_id IS NULL OR g.group_id = p_group_id)
        AND m.source IS NOT NULL AND NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = m.source);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.dropped_sources(integer) IS
    'The sources of a watermark group, or of all, that no longer exist, by the names that they had.';

CREATE OR REPLACE FUNCTION pgtrickle_private.last_name(source regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_class AS c WHERE c.oid = source) THEN
        RETURN qualified_name(source);
    END IF;
    RETURN COALESCE((SELECT min(d.name) FROM dropped_sources() AS d WHERE d.source = last_name.source),
        (SELECT w.source_name FROM pgt_watermarks AS w WHERE w.source_relid = source), source::text);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.last_name(regclass) IS
    'Schema and name of a source, quoted as needed; those that it had if it was dropped.';

CREATE OR REPLACE FUNCTION pgtrickle_private.last_names(sources regclass[]) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT string_agg(last_name(s.source), ', ' ORDER BY s.place)
    FROM unnest(sources) WITH ORDINALITY AS s (source, place)
$$;
COMMENT ON FUNCTION pgtrickle_private.last_names(regclass[]) IS
    'The names of sources, of dropped ones those that they had, as a list in a sentence; NULL if there is none.';

CREATE OR REPLACE FUNCTION pgtrickle_private.dropped_from(p_group_id integer) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (SELECT string_agg(format('source %s of group %s was dropped', d.name, d.group_name), '; ' ORDER BY d.name)
        FROM dropped_sources(p_group_id) AS d);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.dropped_from(integer) IS
    'A sentence that names the sources of a group that no longer exist, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.name_sources() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET quote_all_identifiers = off
AS $$
BEGIN
    IF is_copied() THEN
        RETURN NEW;
    END IF;
    -- One that is gone keeps the name and the owner that it had.
    SELECT array_agg(COALESCE(quote_ident(n.nspname) || '.' || quote_ident(c.relname), o.name) ORDER BY s.place),
        array_agg(COALESCE(pg_get_userbyid(c.relowner)::text, o.owner) ORDER BY s.place)
    INTO NEW.source_names, NEW.source_owners
    FROM unnest(NEW.sources) WITH ORDINALITY AS s (source, place)
    LEFT JOIN pg_class AS c ON c.oid = s.source LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN unnest(CASE WHEN TG_OP = 'UPDATE' THEN OLD.sources END,
        CASE WHEN TG_OP = 'UPDATE' THEN OLD.source_names END,
        CASE WHEN TG_OP = 'UPDATE' THEN OLD.source_owners END) AS o (source, name, owner) ON o.source = s.source;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.name_sources() IS 'Keeps the names and owners of a group''s sources beside them.';

CREATE OR REPLACE TRIGGER name_sources BEFORE INSERT OR UPDATE
    ON pgtrickle.pgt_watermark_groups FOR EACH ROW EXECUTE FUNCTION pgtrickle_private.name_sources();
ALTER TABLE pgtrickle.pgt_watermark_groups ENABLE ALWAYS TRIGGER name_sources;

CREATE OR REPLACE FUNCTION pgtrickle.forget_source(source text) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    gone CONSTANT regclass[] := ARRAY(SELECT DISTINCT d.source FROM dropped_sources() AS d
        WHERE forget_source.source IN (d.name, split_part(d.name, '.', 2)));
    names CONSTANT text[] := ARRAY(SELECT DISTINCT d.name FROM dropped_sources() AS d
        WHERE d.source = ANY (gone) ORDER BY d.name);
    emptied integer;
    altered integer;
BEGIN
    IF cardinality(names) > 1 THEN
        RAISE EXCEPTION '% may be any of %', quote_literal(source), array_to_string(names, ', ')
            USING ERRCODE = '42P09', CONSTRAINT = 'invalid_argument', HINT = 'Say which one, with its schema.';
    ELSIF gone = '{}' THEN
        RAISE EXCEPTION 'no source % of a watermark group was dropped', COALESCE(quote_literal(source), 'NULL')
            USING ERRCODE = '42704', CONSTRAINT = 'unknown_table',
                HINT = did_you_mean(source, ARRAY(
                           SELECT CASE WHEN forget_source.source LIKE '%.%' THEN d.name
                                ELSE split_part(d.name, '.', 2) END
                           FROM dropped_sources() AS d))
                       || 'alter_watermark_group() takes out one that exists; pytrickle doctor names the others.';
    END IF;
    LOCK TABLE pgt_watermark_groups IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM pgt_watermarks AS w WHERE w.source_relid = ANY (gone);
    DELETE FROM pgt_watermark_history AS h WHERE h.source_relid = ANY (gone);
    DELETE FROM pgt_source_gates AS g WHERE g.source_relid = ANY (gone);
    DELETE FROM pgt_partitioned_sources AS p WHERE p.source_relid = ANY (gone);
    DELETE FROM pgt_source_limits AS l WHERE l.source_relid = ANY (gone);
    DELETE FROM pgt_alert_limits AS l WHERE l.source_relid = ANY (gone);
    DELETE FROM pgt_watermark_checks AS c WHERE c.source_relid = ANY (gone);
    DELETE FROM pgt_withdrawn_watermarks AS w WHERE w.source_relid = ANY (gone);
    DELETE FROM pgt_watermark_groups AS g WHERE g.sources <@ gone;
    GET DIAGNOSTICS emptied = ROW_COUNT;
    UPDATE pgt_watermark_groups AS g
    SET sources = ARRAY(SELECT s.source FROM unnest(g.sources) WITH ORDINALITY AS s (source, place)
        WHERE s.source <> ALL (gone) ORDER BY s.place)
    WHERE g.sources && gone;
    GET DIAGNOSTICS altered = ROW_COUNT;
    PERFORM tell('pgtrickle_watermark', jsonb_build_object('forgotten', source));
    RETURN emptied + altered;
END
$$;
COMMENT ON FUNCTION pgtrickle.forget_source(text) IS
    'Takes a table that was dropped out of its watermark groups, and forgets its watermarks, gate and limits; a group '
    'without any other source is dropped. Returns how many groups there were.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_successor(caller name, adopted regclass, gone regclass[])
    RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    owners CONSTANT text[] := ARRAY(
        SELECT DISTINCT COALESCE(m.owner, '?')
        FROM pgt_watermark_groups AS g CROSS JOIN unnest(g.sources, g.source_owners) AS m (source, owner)
        WHERE m.source = ANY (gone));
BEGIN
    IF NOT pg_has_role(caller, catalog_owner(), 'USAGE') AND EXISTS (
        SELECT FROM unnest(owners) AS owner
        WHERE CASE WHEN to_regrole(quote_ident(owner)) IS NULL THEN true
            ELSE NOT pg_has_role(caller, to_regrole(quote_ident(owner)), 'USAGE') END)
    THEN
        RAISE EXCEPTION 'permission denied to take the place of the dropped %', qualified_name(adopted)
            USING ERRCODE = '42501', CONSTRAINT = 'insufficient_privilege',
                HINT = format('Only %s, which owned that, and %I, which owns the catalog, may.',
                    array_to_string(owners, ', '), catalog_owner());
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_successor(name, regclass, regclass[]) IS
    'Error 42501 unless the caller has the rights of who owned the dropped tables, or owns the catalog.';

CREATE OR REPLACE FUNCTION pgtrickle_private.take_over_source(caller name, adopted regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    gone CONSTANT regclass[] := ARRAY(SELECT DISTINCT d.source FROM dropped_sources() AS d
        WHERE d.name = qualified_name(adopted));
BEGIN
    PERFORM check_source_owner(caller, adopted, caller);
    IF gone = '{}' THEN
        RAISE EXCEPTION 'no source of a watermark group was dropped that had the name %', qualified_name(adopted)
            USING ERRCODE = '55000', CONSTRAINT = 'invalid_argument', HINT = 'There is nothing to take over.';
    END IF;
    PERFORM check_successor(caller, adopted, gone);
    LOCK TABLE pgt_watermark_groups IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM pgt_watermarks AS w WHERE w.source_relid = adopted AND w.watermark = '-infinity';
    IF EXISTS (SELECT FROM pgt_watermarks AS w WHERE w.source_relid = adopted) THEN
        -- Its own watermarks may be lower, and those of one table never go back.
        DELETE FROM pgt_watermarks AS w WHERE w.source_relid = ANY (gone);
        DELETE FROM pgt_watermark_history AS h WHERE h.source_relid = ANY (gone);
    ELSE
        UPDATE pgt_watermarks AS w SET source_relid = adopted WHERE w.source_relid = gone[1];
        UPDATE pgt_watermark_history AS h SET source_relid = adopted WHERE h.source_relid = gone[1];
    END IF;
    UPDATE pgt_partitioned_sources AS p SET source_relid = adopted WHERE p.source_relid = gone[1]
        AND NOT EXISTS (SELECT FROM pgt_partitioned_sources AS o WHERE o.source_relid = adopted);
    UPDATE pgt_source_gates AS g SET source_relid = adopted WHERE g.source_relid = gone[1]
        AND NOT EXISTS (SELECT FROM pgt_source_gates AS o WHERE o.source_relid = adopted);
    UPDATE pgt_source_limits AS l SET source_relid = adopted WHERE l.source_relid = gone[1]
        AND NOT EXISTS (SELECT FROM pgt_source_limits AS o WHERE o.source_relid = adopted);
    UPDATE pgt_alert_limits AS l SET source_relid = adopted WHERE l.source_relid = gone[1]
        AND NOT EXISTS (SELECT FROM pgt_alert_limits AS o WHERE o.source_relid = adopted);
    UPDATE pgt_watermark_checks AS c SET source_relid = adopted WHERE c.source_relid = gone[1]
        AND NOT EXISTS (SELECT FROM pgt_watermark_checks AS o WHERE o.source_relid = adopted);
    UPDATE pgt_withdrawn_watermarks AS w SET source_relid = adopted WHERE w.source_relid = ANY (gone);
    UPDATE pgt_watermark_groups AS g
    SET sources = ARRAY(SELECT CASE WHEN s.source = ANY (gone) THEN adopted ELSE s.source END
        FROM unnest(g.sources) WITH ORDINALITY AS s (source, place)
        WHERE NOT (s.source = ANY (gone) AND adopted = ANY (g.sources)) ORDER BY s.place)
    WHERE g.sources && gone;
    PERFORM tell('pgtrickle_watermark', jsonb_build_object('source', qualified_name(adopted)));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.take_over_source(name, regclass) IS
    'Puts a table in the place of a dropped one that had its name, for its caller.';

CREATE OR REPLACE FUNCTION pgtrickle.adopt_source(source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    INSERT INTO pgt_calls (call, source) VALUES ('adopt_source', source);
END
$$;
COMMENT ON FUNCTION pgtrickle.adopt_source(regclass) IS
    'Puts a table that was created again in the place of the dropped one of the same name: in its watermark groups, '
    'with its gate, its limits and, unless the new one has advanced already, its watermarks. For who owns the table '
    'and owned the dropped one, or owns the catalog.';

CREATE OR REPLACE FUNCTION pgtrickle.adopt_source(
        source text, search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM adopt_source(source_named(source, search_path));
END
$$;
COMMENT ON FUNCTION pgtrickle.adopt_source(text, text) IS 'The same for a source that comes by its name, as text.';
