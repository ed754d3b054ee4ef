-- Columns as capture sees them. A virtual one, which is empty in transition tables and in NEW and OLD, is computed by
-- the change buffer from the others, as the source computes it: where it is read, by the settings of the session that
-- reads, and without a writer noticing that it cannot be computed.

DROP FUNCTION IF EXISTS pgtrickle_private.capture_columns(regclass, text[]);
CREATE OR REPLACE FUNCTION pgtrickle_private.capture_columns(
        source regclass, columns text[], OUT targets text, OUT expressions text, OUT note text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET quote_all_identifiers = off
AS $$
    SELECT COALESCE(string_agg(format(', %I', a.attname), '' ORDER BY a.attnum) FILTER (WHERE a.attgenerated <> 'v'),
               ''),
           COALESCE(string_agg(format(', n.%I', a.attname), '' ORDER BY a.attnum) FILTER (WHERE a.attgenerated <> 'v'),
               ''),
           -- As it is stored: printing it would depend on the session, and wait for a lock on the table.
           COALESCE(string_agg(format(E'\n-- %s', md5(format('%I = %s', a.attname, d.adbin))), '' ORDER BY a.attnum)
               FILTER (WHERE a.attgenerated <> ''), '')
    FROM pg_attribute AS a LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = source AND a.attnum > 0 AND NOT a.attisdropped AND a.attname = ANY (columns)
$$;
COMMENT ON FUNCTION pgtrickle_private.capture_columns(regclass, text[]) IS
    'Column lists of the capture functions; the note changes when a generated column is defined anew.';

CREATE OR REPLACE FUNCTION pgtrickle_private.column_definition(relation regclass, column_name text) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod))
        || COALESCE((SELECT format(' COLLATE %I.%I', n.nspname, c.collname)
                     FROM pg_collation AS c JOIN pg_namespace AS n ON n.oid = c.collnamespace
                     WHERE c.oid = a.attcollation), '')
    FROM pg_attribute AS a
    WHERE a.attrelid = relation AND a.attname = column_name AND NOT a.attisdropped
$$;
COMMENT ON FUNCTION pgtrickle_private.column_definition(regclass, text) IS
    'Name, type and collation of a column, as CREATE TABLE takes them.';

CREATE OR REPLACE FUNCTION pgtrickle_private.with_columns_below(source regclass, columns text[]) RETURNS text[]
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT ARRAY(
        SELECT unnest(columns)
        UNION SELECT b.attname::text
        FROM pg_attribute AS v JOIN pg_attrdef AS d ON d.adrelid = v.attrelid AND d.adnum = v.attnum
            JOIN pg_depend AS p ON p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid
                AND p.refclassid = 'pg_class'::regclass AND p.refobjid = v.attrelid
            JOIN pg_attribute AS b ON b.attrelid = v.attrelid AND b.attnum = p.refobjsubid AND b.attnum > 0
        WHERE v.attrelid = source AND v.attgenerated = 'v' AND v.attname = ANY (columns))
$$;
COMMENT ON FUNCTION pgtrickle_private.with_columns_below(regclass, text[]) IS
    'These columns of a source, and those that the virtual ones among them are computed from.';

-- Whatever the session is set to, what is printed is read as it was meant.
CREATE OR REPLACE FUNCTION pgtrickle_private.add_to_buffer(source regclass, buffer text, column_name text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET quote_all_identifiers = off SET standard_conforming_strings = on SET TimeZone = 'UTC'
        SET DateStyle = 'ISO, MDY' SET IntervalStyle = 'postgres' SET extra_float_digits = 1 SET bytea_output = 'hex'
        SET lc_monetary = 'C' SET array_nulls = on
AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ADD COLUMN %s', buffer, column_definition(source, column_name)) || COALESCE((
        SELECT format(' GENERATED ALWAYS AS (%s) VIRTUAL', pg_get_expr(d.adbin, d.adrelid))
        FROM pg_attribute AS a JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = source AND a.attname = column_name AND a.attgenerated = 'v'), '');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.add_to_buffer(regclass, text, text) IS
    'Gives a change buffer a column of its source.';
