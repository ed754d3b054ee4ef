-- A stream table is refreshed by the text of its query, in which names are looked up: another function or operator of
-- the same name, or a cast, may be a better match than what PostgreSQL found when the hidden view was made.
CREATE OR REPLACE FUNCTION pgtrickle_private.found_by_name(view regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    first_own CONSTANT oid := 16384;
    functions CONSTANT oid[] := ARRAY(SELECT functions_below(view));
    others CONSTANT pg_depend[] := ARRAY(
        SELECT d FROM views_below(view) AS b(relid) JOIN pg_rewrite AS r ON r.ev_class = b.relid
            JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
        WHERE d.refclassid IN ('pg_operator'::regclass, 'pg_ts_config'::regclass, 'pg_ts_dict'::regclass));
BEGIN
    -- Most queries name nothing but tables and what is PostgreSQL's own.
    IF functions = '{}' AND others = '{}' AND NOT EXISTS (SELECT FROM pg_cast AS c WHERE c.oid >= first_own) THEN
        RETURN NULL;
    END IF;
    RETURN (
        WITH named(classid, objid) AS MATERIALIZED (
            SELECT DISTINCT o.refclassid, o.refobjid FROM unnest(others) AS o
        ), configurations AS MATERIALIZED (
            SELECT c.oid, format('%s %s %s', c.cfgname, c.cfgnamespace, c.cfgparser) AS meaning
            FROM named AS n JOIN pg_ts_config AS c ON n.classid = 'pg_ts_config'::regclass AND c.oid = n.objid
        ), mapped AS MATERIALIZED (
            SELECT m.mapcfg, m.maptokentype, m.mapseqno, m.mapdict
            FROM configurations AS c JOIN pg_ts_config_map AS m ON m.mapcfg = c.oid
        ), dictionaries(oid) AS (
            SELECT n.objid FROM named AS n WHERE n.classid = 'pg_ts_dict'::regclass
            UNION SELECT m.mapdict FROM mapped AS m WHERE m.mapdict >= first_own
        ), found(what) AS (
            SELECT format('function %s', o.oid) FROM pg_proc AS o
            WHERE o.oid >= first_own AND o.oid <> ALL (functions)
                AND o.proname IN (SELECT p.proname FROM pg_proc AS p WHERE p.oid = ANY (functions))
            UNION ALL SELECT format('owner %s %s', p.oid, p.proowner) FROM pg_proc AS p
            WHERE p.oid = ANY (functions) AND p.prosecdef
            UNION ALL SELECT format('operator %s', o.oid)
            FROM named AS n JOIN pg_operator AS p ON n.classid = 'pg_operator'::regclass AND p.oid = n.objid
                JOIN pg_operator AS o ON o.oprname = p.oprname AND o.oid >= first_own AND o.oid <> p.oid
            UNION ALL SELECT format('cast %s %s', c.oid, c.xmin)
            FROM pg_cast AS c
            WHERE c.oid >= first_own AND EXISTS (
                SELECT FROM (SELECT array_agg(w) AS types FROM query_trees(view) AS t, types_within(t.tree) AS w) AS h
                WHERE c.castsource = ANY (h.types) AND c.casttarget = ANY (h.types))
            UNION ALL SELECT format('configuration %s %s', c.oid, c.meaning) FROM configurations AS c
            UNION ALL SELECT format('mapping %s %s %s %s', m.mapcfg, m.maptokentype, m.mapseqno, m.mapdict)
            FROM mapped AS m
            UNION ALL SELECT format('dictionary %s %s %s %s %s', s.oid, s.dictname, s.dictnamespace, s.dicttemplate,
                s.dictinitoption)
            FROM dictionaries AS d JOIN pg_ts_dict AS s ON s.oid = d.oid
        )
        SELECT string_agg(f.what, ',' ORDER BY f.what) FROM found AS f);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.found_by_name(regclass) IS
    'What the names in a view''s text may be taken for now, beside what they are, and who runs the functions that run '
    'as their owner; or NULL.';
