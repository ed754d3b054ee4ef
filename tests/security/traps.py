"""Traps: a schema that offers all that pg_catalog does, and raises an error when anything of it is used."""

from tests.conftest import Database

# For types that PL/pgSQL does not take there can be no trap: nobody but a superuser could write one.
OFFERED = """
CREATE TEMP VIEW functions AS
SELECT p.oid, p.proname, p.prokind, p.proallargtypes IS NULL AS is_plain,
    format('BEGIN RAISE EXCEPTION %L; END', 'trapped by ' || p.proname) AS body,
    CASE WHEN p.proretset THEN 'SETOF ' ELSE '' END || format_type(p.prorettype, NULL) AS result,
    (SELECT string_agg(format_type(t, NULL), ', ' ORDER BY n) FROM unnest(p.proargtypes) WITH ORDINALITY AS u(t, n)) AS types,
    (SELECT string_agg(format('%s a%s %s', CASE m WHEN 'i' THEN 'IN' ELSE 'OUT' END, n, format_type(t, NULL)), ', ' ORDER BY n)
     FROM unnest(p.proallargtypes, p.proargmodes) WITH ORDINALITY AS u(t, m, n)) AS arguments,
    NULLIF(pg_get_function_identity_arguments(p.oid), '') AS identity
FROM pg_proc AS p WHERE p.pronamespace = 'pg_catalog'::regnamespace;

CREATE TEMP VIEW traps AS
SELECT format('CREATE FUNCTION open.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', f.proname, f.types, f.result, f.body) AS statement
FROM functions AS f WHERE f.prokind = 'f' AND f.is_plain
UNION ALL
SELECT format('CREATE FUNCTION open.%I(%s) RETURNS SETOF record LANGUAGE plpgsql AS %L', f.proname, f.arguments, f.body)
FROM functions AS f WHERE f.prokind = 'f' AND NOT f.is_plain
UNION ALL
SELECT format('CREATE OPERATOR open.%s (FUNCTION = open.%I%s, RIGHTARG = %s)', o.oprname, f.proname,
              ', LEFTARG = ' || format_type(NULLIF(o.oprleft, 0), NULL), format_type(o.oprright, NULL))
FROM pg_operator AS o JOIN functions AS f ON f.oid = o.oprcode WHERE o.oprnamespace = 'pg_catalog'::regnamespace
UNION ALL
SELECT format('CREATE FUNCTION open.step(%s) RETURNS integer LANGUAGE plpgsql AS %L', a.arguments, 'BEGIN RAISE EXCEPTION ''trapped''; END')
FROM (SELECT DISTINCT concat_ws(', ', 'integer', f.identity) FROM functions AS f WHERE f.prokind = 'a') AS a(arguments)
UNION ALL
SELECT format('CREATE AGGREGATE open.%I(%s) (SFUNC = open.step, STYPE = integer, INITCOND = 0)', f.proname, COALESCE(f.identity, '*'))
FROM functions AS f WHERE f.prokind = 'a'
UNION ALL
SELECT format('CREATE VIEW open.%I AS SELECT * FROM pg_catalog.%I WHERE open.trap()', c.relname, c.relname)
FROM pg_class AS c WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v')
UNION ALL
SELECT format('CREATE DOMAIN open.%I AS pg_catalog.%I CHECK (open.trap())', t.typname, t.typname)
FROM pg_type AS t WHERE t.typnamespace = 'pg_catalog'::regnamespace AND t.typtype = 'b' AND t.typcategory <> 'A';
"""  # noqa: E501
SET = """
CREATE SCHEMA open;
GRANT USAGE ON SCHEMA open TO PUBLIC;
CREATE FUNCTION open.trap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;
DO $do$
DECLARE
    trap text;
BEGIN
    FOR trap IN SELECT t.statement FROM traps AS t LOOP
        BEGIN
            EXECUTE trap;
        EXCEPTION
            WHEN OTHERS THEN NULL;
        END;
    END LOOP;
END
$do$;
"""
# Whoever has this path finds a trap wherever a name has no schema.
PATH = "open,public,pg_catalog"


def set_traps(db: Database) -> str:
    """Set the traps; return the connection string of a superuser who finds every name in them first."""
    with db.connect(options="-c search_path=pg_catalog,pg_temp -c check_function_bodies=off") as connection:
        connection.execute(f"{OFFERED}{SET}".encode())
    separator = "&" if "?" in db.dsn else "?"
    return f"{db.dsn}{separator}options=-csearch_path%3D{PATH}"
