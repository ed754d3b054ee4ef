-- Functions that resolve names while they run must see the search_path of whoever created the stream table, though the
-- SQL that calls them does not. Generated SQL calls a wrapper that sets it. A function that cannot be wrapped, or is
-- called by way of an operator, a cast, an aggregate or a domain, is found in what PostgreSQL reads of the generated
-- text.

CREATE OR REPLACE FUNCTION pgtrickle_private.sets_path(function oid) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT EXISTS (SELECT FROM pg_proc AS p CROSS JOIN LATERAL unnest(p.proconfig) AS s(setting) WHERE p.oid = function
        AND s.setting LIKE 'search_path=%')
$$;
COMMENT ON FUNCTION pgtrickle_private.sets_path(oid) IS
    'Whether a function has a search_path of its own, for itself and for all that it calls.';

CREATE OR REPLACE FUNCTION pgtrickle_private.path_dependent_name(name name) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT name ~ '^(current_schemas?|to_reg.*|'
        'reg(class|collation|config|dictionary|namespace|oper|operator|proc|procedure|role|type)|'
        'pg_.*_is_visible|pg_get_.*(def|expr|arguments|result|columns|sequence|address)|format_type|has_.*_privilege|'
        'pg_collation_for|pg_describe_object|pg_input_.*|row_security_active|'
        '(query|table|cursor|schema|database)_to_xml.*)$'
$$;
COMMENT ON FUNCTION pgtrickle_private.path_dependent_name(name) IS
    'Whether functions of that name that come with PostgreSQL look something up by the search_path.';

CREATE OR REPLACE FUNCTION pgtrickle_private.path_dependent_among(functions oid[], constraints oid[]) RETURNS SETOF oid
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    WITH RECURSIVE called(classid, objid) AS (
        SELECT 'pg_proc'::regclass::oid, f FROM unnest(functions) AS f
        UNION
        SELECT 'pg_constraint'::regclass, k FROM unnest(constraints) AS k
        UNION
        SELECT d.refclassid, d.refobjid FROM called AS c JOIN pg_depend AS d ON d.classid = c.classid
            AND d.objid = c.objid
        WHERE d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
            AND NOT (c.classid = 'pg_proc'::regclass AND sets_path(c.objid)))
    SELECT p.oid
    FROM called AS c JOIN pg_proc AS p ON p.oid = c.objid JOIN pg_language AS l ON l.oid = p.prolang
    WHERE c.classid = 'pg_proc'::regclass AND p.prokind <> 'a'
        AND CASE WHEN p.pronamespace = 'pg_catalog'::regnamespace
                 THEN path_dependent_name(p.proname)
                 -- One in C that always gives the same for the same arguments asks for no table that these name.
                 ELSE (l.lanname NOT IN ('c', 'internal') OR (l.lanname = 'c' AND p.provolatile <> 'i'))
                     AND p.prosqlbody IS NULL
                     AND p.pronamespace NOT IN ('pgtrickle'::regnamespace, 'pgtrickle_private'::regnamespace)
                      AND NOT sets_path(p.oid) END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.path_dependent_among(oid[], oid[]) IS
    'Those of some functions, and of what these and some constraints call, that find names by the search_path while '
    'they run.';

CREATE OR REPLACE FUNCTION pgtrickle_private.path_dependent_functions(view regclass) RETURNS SETOF oid
    LANGUAGE sql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
    SELECT path_dependent_among(
        ARRAY(SELECT DISTINCT m[1]::oid
              FROM pg_rewrite AS r
              CROSS JOIN LATERAL regexp_matches(r.ev_action::text, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)',
                  'g') AS m
              WHERE r.ev_class = view AND r.rulename = '_RETURN'),
        ARRAY(SELECT k.oid FROM types_used(view) AS t(id) JOIN pg_constraint AS k ON k.contypid = t.id))
$$;
COMMENT ON FUNCTION pgtrickle_private.path_dependent_functions(regclass) IS
    'Functions that a view calls itself, in whatever way, and that find names by the search_path while they run.';

-- Rows are stored by generated SQL, which checks the domains within their columns: those of fields, and of the columns
-- themselves in tables that were made before these became of the types below.
CREATE OR REPLACE FUNCTION pgtrickle_private.domain_obstacle(relation regclass) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH RECURSIVE parts(id) AS (
        SELECT CASE WHEN c.relkind = 'v' THEN s.type ELSE a.atttypid END
        FROM stored_columns(relation) AS s JOIN pg_attribute AS a ON a.attrelid = relation AND a.attnum = s.place
            JOIN pg_class AS c ON c.oid = relation
        UNION
        SELECT next.id FROM parts AS p JOIN pg_type AS t ON t.oid = p.id CROSS JOIN LATERAL (
            SELECT t.typbasetype UNION ALL SELECT t.typelem
            UNION ALL SELECT a.atttypid FROM pg_attribute AS a WHERE a.attrelid = t.typrelid AND a.attnum > 0
                AND NOT a.attisdropped) AS next(id)
        WHERE next.id <> 0)
    SELECT min(f::regprocedure::text)
    FROM path_dependent_among('{}',
        ARRAY(SELECT k.oid FROM parts AS p JOIN pg_constraint AS k ON k.contypid = p.id)) AS f
$$;
COMMENT ON FUNCTION pgtrickle_private.domain_obstacle(regclass) IS
    'The function by which a domain of a relation''s columns checks values, if that finds names by the search_path; '
    'or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_domain(relation regclass) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    found CONSTANT text := domain_obstacle(relation);
BEGIN
    IF found IS NOT NULL THEN
        PERFORM refuse_query(format('a column has a domain that is checked by %s, which finds names by the search_path',
            found),
            format('ALTER FUNCTION %s SET search_path = ... with the schemas of what it names.', found));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_domain(regclass) IS
    'Error 0A000 if the rows of a relation could be stored under the search_path of its creator only.';

CREATE OR REPLACE FUNCTION pgtrickle_private.said_of_path(function oid) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT format('the function %s, which finds names by the search_path while it runs, unless ALTER FUNCTION gives it '
        'one', function::regprocedure)
$$;
COMMENT ON FUNCTION pgtrickle_private.said_of_path(oid) IS
    'What path_dependence() says of a function.';

CREATE OR REPLACE FUNCTION pgtrickle_private.path_dependence(view regclass) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT found.what
    FROM (
        SELECT said_of_path(f) FROM path_dependent_functions(view) AS f
        UNION ALL
        SELECT 'CURRENT_SCHEMA' FROM pg_rewrite AS r WHERE r.ev_class = view
            AND r.ev_action::text LIKE '%{SQLVALUEFUNCTION :op 14 %'
        UNION ALL
        SELECT names_shown(view)) AS found(what)
    WHERE found.what IS NOT NULL
    ORDER BY 1 LIMIT 1
$$;
COMMENT ON FUNCTION pgtrickle_private.path_dependence(regclass) IS
    'What of a view may depend on the search_path under which it is read, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.wrapper_name(function oid, search_path text) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT format('call_%s_%s', left(md5(format('%s %s %s', p.pronamespace, p.proname, search_path)), 16),
        p.proname)::name::text
    FROM pg_proc AS p WHERE p.oid = function
$$;
COMMENT ON FUNCTION pgtrickle_private.wrapper_name(oid, text) IS
    'The name in pgtrickle_state of the wrapper of a function under a search_path; functions of one name share it.';

-- With typed operands, which PostgreSQL always prints, the best of all operators stays the best of fewer.
CREATE OR REPLACE FUNCTION pgtrickle_private.uses_plain_names(view regclass) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
BEGIN
    RETURN NOT EXISTS (
        SELECT FROM (
            SELECT tree, tree ~ ':opnos \(|:groupingSets \(\{|:varattno 0 :vartype 2249 |:row_format 2 '
                '|\{SQLVALUEFUNCTION :op 14 ' AS needs_a_look
            FROM query_trees(view) OFFSET 0) AS t
        CROSS JOIN LATERAL regexp_matches(t.tree,
            ':(?:opno|opnos|\w*func(?:id|type)|\w*fnoid|\w*type(?:id)?) (?:\(o )?(\d+)', 'g') AS m
        WHERE t.needs_a_look OR m[1]::oid >= 16384
            OR EXISTS (SELECT FROM pg_type AS y WHERE y.oid = m[1]::oid AND y.typname ~ '^_?reg')
            OR EXISTS (SELECT FROM pg_proc AS p WHERE p.oid = m[1]::oid AND path_dependent_name(p.proname)));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.uses_plain_names(regclass) IS
    'Whether a view, and every view that it reads, uses types, operators and functions of PostgreSQL''s own only, '
    'none of which follows the search_path.';

-- A name and its overloads stay apart by their types, which are written out; so are those that a path would find.
CREATE OR REPLACE FUNCTION pgtrickle_private.wrappable_functions(view regclass) RETURNS SETOF oid
    LANGUAGE sql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT DISTINCT p.oid
    FROM views_below(view) AS b(relid) CROSS JOIN LATERAL path_dependent_functions(b.relid::regclass) AS f
        JOIN pg_proc AS p ON p.oid = f
    WHERE p.prokind = 'f' AND NOT p.proretset AND p.provolatile <> 'v' AND p.provariadic = 0 AND p.pronargdefaults = 0
        AND p.proallargtypes IS NULL AND p.pronamespace <> 'pg_catalog'::regnamespace
        AND NOT EXISTS (SELECT FROM pg_type AS t WHERE t.oid = ANY (p.proargtypes::oid[] || p.prorettype)
            AND t.typtype = 'p')
$$;
COMMENT ON FUNCTION pgtrickle_private.wrappable_functions(regclass) IS
    'Functions that find names by the search_path, called by a view or one that it reads, for which a wrapper can '
    'stand in.';

CREATE OR REPLACE FUNCTION pgtrickle_private.wrap_function(function oid, search_path text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    p CONSTANT pg_proc := (SELECT q FROM pg_proc AS q WHERE q.oid = function);
    arguments CONSTANT text := (SELECT string_agg(format_type(t, NULL), ', ' ORDER BY n)
        FROM unnest(p.proargtypes) WITH ORDINALITY AS a(t, n));
    made CONSTANT text := format('pgtrickle_state.%I(%s)', wrapper_name(function, search_path), arguments);
    statement CONSTANT text := format(
        'CREATE OR REPLACE FUNCTION %s RETURNS %s LANGUAGE sql %s %s PARALLEL %s COST %s SET search_path FROM CURRENT '
        'RETURN %s.%I(%s)',
        made, format_type(p.prorettype, NULL),
        CASE p.provolatile WHEN 'i' THEN 'IMMUTABLE' ELSE 'STABLE' END, CASE WHEN p.proisstrict THEN 'STRICT'
            ELSE 'CALLED ON NULL INPUT' END,
        CASE p.proparallel WHEN 's' THEN 'SAFE' WHEN 'r' THEN 'RESTRICTED' ELSE 'UNSAFE' END, p.procost,
        p.pronamespace::regnamespace, p.proname, (SELECT string_agg('$' || n, ', ' ORDER BY n)
            FROM generate_series(1, p.pronargs::integer) AS n));
BEGIN
    PERFORM set_config('search_path', search_path, true);
    EXECUTE statement;
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pgtrickle, pgtrickle_private, pg_temp', true);
    PERFORM hand_over_function(made::regprocedure);
EXCEPTION
    -- Another session wraps it, too.
    WHEN unique_violation OR duplicate_function THEN NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.wrap_function(oid, text) IS
    'Makes the wrapper that calls a function under a search_path; nobody but the owner of the catalog may call it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.wrapped_functions() RETURNS TABLE (wrapper oid, wrapped oid)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
    SELECT p.oid, d.refobjid
    FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
        AND d.refclassid = 'pg_proc'::regclass
    WHERE p.pronamespace = 'pgtrickle_state'::regnamespace AND p.proname LIKE 'call\_%'
$$;
COMMENT ON FUNCTION pgtrickle_private.wrapped_functions() IS
    'The wrappers in pgtrickle_state and the functions for which they stand.';

CREATE OR REPLACE FUNCTION pgtrickle_private.wrap_functions(view regclass, search_path text) RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT wrap_function(f, search_path) FROM wrappable_functions(view) AS f WHERE NOT uses_plain_names(view)
$$;
COMMENT ON FUNCTION pgtrickle_private.wrap_functions(regclass, text) IS
    'Makes the wrappers of the functions that a view calls and that find names by the search_path.';

CREATE OR REPLACE FUNCTION pgtrickle_private.drop_idle_wrappers() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET client_min_messages = warning
        SET standard_conforming_strings = on
AS $$
DECLARE
    idle oid;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_proc WHERE pronamespace = 'pgtrickle_state'::regnamespace AND proname LIKE 'call\_%')
        THEN
        RETURN;
    END IF;
    FOR idle IN
        SELECT w.wrapper FROM wrapped_functions() AS w JOIN pg_proc AS p ON p.oid = w.wrapper
        WHERE NOT EXISTS (SELECT FROM pgt_stream_tables AS t JOIN pg_class AS c ON c.oid = t.view_relid
                          CROSS JOIN LATERAL wrappable_functions(t.view_relid) AS f
                          WHERE f = w.wrapped AND p.proname = wrapper_name(f, t.session_settings ->> 'search_path'))
    LOOP
        EXECUTE format('DROP FUNCTION %s', idle::regprocedure);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.drop_idle_wrappers() IS
    'Drops the wrappers that no stream table uses any more, so that the functions can be dropped.';

REVOKE ALL ON FUNCTION pgtrickle_private.sets_path(oid), pgtrickle_private.path_dependent_name(name),
    pgtrickle_private.uses_plain_names(regclass),
    pgtrickle_private.path_dependent_among(oid[], oid[]), pgtrickle_private.domain_obstacle(regclass),
        pgtrickle_private.refuse_domain(regclass), pgtrickle_private.path_dependent_functions(regclass),
        pgtrickle_private.said_of_path(oid), pgtrickle_private.path_dependence(regclass),
    pgtrickle_private.wrapper_name(oid, text),
    pgtrickle_private.wrappable_functions(regclass), pgtrickle_private.wrap_function(oid, text),
        pgtrickle_private.wrapped_functions(), pgtrickle_private.wrap_functions(regclass, text),
    pgtrickle_private.drop_idle_wrappers() FROM PUBLIC;
