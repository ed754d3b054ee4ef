-- The types by which rows of a query are stored. A domain says what may be written to a table. What a query shows need
-- not fit: an outer join has NULLs in each column of its other side, and a constraint may be younger than a row. To
-- PostgreSQL these are values of the domain, but it reads none of them in. Arrays of domains are stored as such: no
-- operator compares them with arrays of the type below.

CREATE OR REPLACE FUNCTION pgtrickle_private.stored_type(type oid, modifier integer, OUT stored oid,
    OUT stored_modifier integer)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    known pg_type;
BEGIN
    stored := type;
    stored_modifier := modifier;
    LOOP
        known := (SELECT t FROM pg_type AS t WHERE t.oid = stored);
        EXIT WHEN known.typtype IS DISTINCT FROM 'd';
        stored := known.typbasetype;
        stored_modifier := known.typtypmod;
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.stored_type(oid, integer) IS
    'The type by which values of a type are stored, and its modifier: of a domain those of the type below it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.stored_columns(relation regclass)
    RETURNS TABLE (name name, place smallint, type oid, definition text, differs boolean)
    LANGUAGE sql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT a.attname, a.attnum, s.stored, format_type(s.stored, s.stored_modifier)
        || COALESCE((SELECT format(' COLLATE %I.%I', n.nspname, c.collname)
                     FROM pg_collation AS c JOIN pg_namespace AS n ON n.oid = c.collnamespace
                     WHERE c.oid = a.attcollation), ''),
        s.stored <> a.atttypid
    FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid CROSS JOIN LATERAL (
        SELECT d.stored, d.stored_modifier FROM stored_type(a.atttypid, a.atttypmod) AS d
            WHERE t.typtype = 'd'
        UNION ALL SELECT a.atttypid, a.atttypmod WHERE t.typtype <> 'd') AS s
    WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped
$$;
COMMENT ON FUNCTION pgtrickle_private.stored_columns(regclass) IS
    'The columns of a relation, each with the type and collation by which its values are stored, and whether that is '
    'another type than it has.';

CREATE OR REPLACE FUNCTION pgtrickle_private.columns_of(relation regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (SELECT string_agg(format('%I %s', s.name, s.definition), ', ' ORDER BY s.place)
            FROM stored_columns(relation) AS s);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.columns_of(regclass) IS
    'The columns that a stream table with the rows of a relation has, as CREATE TABLE takes them.';

CREATE OR REPLACE FUNCTION pgtrickle_private.stored_alike(one regclass, other regclass) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (SELECT array_agg(s.definition ORDER BY s.place) FROM stored_columns(one) AS s)
        IS NOT DISTINCT FROM (SELECT array_agg(s.definition ORDER BY s.place) FROM stored_columns(other) AS s);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.stored_alike(regclass, regclass) IS
    'Whether the columns of two relations are stored by the same types, whatever their names are.';

CREATE OR REPLACE FUNCTION pgtrickle_private.without_domains(made regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    changes CONSTANT text := (
        SELECT string_agg(format('ALTER %I TYPE %s', s.name, s.definition), ', ') FROM stored_columns(made) AS s
        WHERE s.differs);
BEGIN
    IF changes IS NOT NULL THEN
        EXECUTE format('ALTER TABLE %s %s', made, changes);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.without_domains(regclass) IS
    'Gives the columns of an empty table the types by which their values are stored.';
