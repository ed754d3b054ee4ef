-- Whether a query gives something else although no source changed.

-- A cast through text is no function: 'now'::text::date reads the clock, as views of old servers have it in the place
-- of CURRENT_DATE.
CREATE OR REPLACE FUNCTION pgtrickle_private.clock_cast(view regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
        SET quote_all_identifiers = off
AS $$
BEGIN
    RETURN (
        SELECT 'the cast of ' || m[1]
        FROM query_trees(view) AS t JOIN pg_rewrite AS r ON r.oid = t.rule
        CROSS JOIN LATERAL regexp_matches(pg_get_viewdef(r.ev_class),
            '(''[^'']*\m(?:now|today|tomorrow|yesterday)\M[^'']*''::(?:text|character varying|bpchar|name))', 'gi') AS m
        WHERE t.tree ~ '\{COERCEVIAIO .*:resulttype (1082|1083|1114|1184|1266|1182|1183|1115|1185|1270)\M'
        ORDER BY 1 LIMIT 1);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.clock_cast(regclass) IS
    'A text by which a view reads the clock, as it casts it to a moment; or NULL.';

-- Of the STABLE functions that come with PostgreSQL most depend only on settings that are pinned when the query is
-- evaluated (time zone, date style); these depend on the clock, the session or the catalog.
CREATE OR REPLACE FUNCTION pgtrickle_private.time_dependence(view regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT format('%s depends on when and by whom it is called', name)
        FROM (
            SELECT p.oid::regprocedure::text AS name
            FROM query_functions(view) AS f JOIN pg_proc AS p ON p.oid = f
            WHERE p.provolatile = 's' AND (
                p.pronamespace <> 'pg_catalog'::regnamespace
                OR p.proname ~ '^(now|(transaction|statement)_timestamp|current_.*|session_user|system_user|user|'
                    'getpgusername|version|mxid_age|aclexplode|.*_description)$'
                OR p.proname ~ '^(pg_|has_|txid_|inet_(client|server)|row_security|to_reg|reg|get_current_ts|'
                    'format_type|(database|schema|table|cursor|query)_to_xml)'
                OR p.proname = 'age' AND p.pronargs = 1
                -- A time of day has a zone only together with a day, which is the current one.
                OR p.proname IN ('timetz', 'timezone') AND p.prorettype = 'timetz'::regtype
                OR p.proname ~ '(_to_tsvector|^to_tsvector|to_tsquery|^ts_headline|^ts_debug|^ts_match_t)'
                    AND p.proargtypes[0] <> 'regconfig'::regtype)
            UNION ALL
            SELECT 'CURRENT_DATE, CURRENT_TIMESTAMP, CURRENT_USER or the like' FROM query_trees(view)
                WHERE tree LIKE '%{SQLVALUEFUNCTION %'
            UNION ALL
            SELECT format('an argument that %s has by default', p.oid::regprocedure) FROM query_functions(view) AS f
                JOIN pg_proc AS p ON p.oid = f WHERE p.proargdefaults::text LIKE '%{SQLVALUEFUNCTION %'
            UNION ALL
            SELECT clock_cast(view)
            UNION ALL
            SELECT names_shown(view)
        ) AS found(name)
        WHERE name IS NOT NULL
        ORDER BY name LIMIT 1);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.time_dependence(regclass) IS
    'Why the result of a view may change although no source does, or NULL.';
