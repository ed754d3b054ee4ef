-- What a defining query reads and calls, from the parse tree PostgreSQL stored for the hidden view.

-- PL/pgSQL keeps the plan of its query; an SQL function would be planned anew at every call. Without ROWS PostgreSQL
-- expects a thousand views or functions of a query, and searches all of the database for them.
CREATE OR REPLACE FUNCTION pgtrickle_private.views_below(view regclass) RETURNS SETOF oid
    LANGUAGE plpgsql STABLE ROWS 3 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    WITH RECURSIVE below(relid) AS (
        SELECT view::oid
        UNION
        SELECT c.oid
        FROM below AS b JOIN pg_rewrite AS r ON r.ev_class = b.relid
        JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
            AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> b.relid
        JOIN pg_class AS c ON c.oid = d.refobjid AND c.relkind = 'v')
    SELECT relid FROM below;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.views_below(regclass) IS
    'The view itself and all views that it reads, at any depth; those of pg_catalog count as tables.';

-- pg_depend leaves out system objects and functions used through operators, so relations and functions come from the
-- tree.
CREATE OR REPLACE FUNCTION pgtrickle_private.query_trees(view regclass) RETURNS TABLE (rule oid, tree text)
    LANGUAGE plpgsql STABLE ROWS 3 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT r.oid, r.ev_action::text
    FROM views_below(view) AS below(relid) JOIN pg_rewrite AS r ON r.ev_class = below.relid AND r.rulename = '_RETURN';
END
$$;
COMMENT ON FUNCTION pgtrickle_private.query_trees(regclass) IS
    'Parse trees of a view and of every view it reads, at any depth.';

CREATE OR REPLACE FUNCTION pgtrickle_private.relations_named(view regclass)
    RETURNS TABLE (named_by oid, relid oid, whole_row boolean, only_itself boolean)
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
BEGIN
    RETURN QUERY
    WITH trees AS MATERIALIZED (
        SELECT r.ev_class, r.ev_action::text AS tree
        FROM views_below(view) AS below(id) JOIN pg_rewrite AS r ON r.ev_class = below.id AND r.rulename = '_RETURN'),
    named AS (
        -- PostgreSQL 15 puts :inh behind four other fields and lists the view itself as OLD and NEW. One pattern for
        -- all of it takes ten times as long as the rest.
        SELECT t.ev_class, split_part(p.piece, ' ', 1)::oid AS id,
            split_part(p.piece, ':inh ', 2) LIKE 'false%' AS without_children
        FROM trees AS t CROSS JOIN LATERAL string_to_table(t.tree, ':rtekind 0 :relid ') WITH ORDINALITY AS p(piece,
            position)
        WHERE p.position > 1),
    whole AS (
        SELECT DISTINCT t.ev_class, m[1]::oid AS rowtype
        FROM trees AS t CROSS JOIN LATERAL regexp_matches(t.tree, ':varattno 0 :vartype (\d+)', 'g') AS m)
    SELECT n.ev_class, c.oid, (n.ev_class, c.reltype) IN (SELECT w.ev_class, w.rowtype FROM whole AS w),
        bool_or(n.without_children)
    -- A few names are looked up one by one: PostgreSQL takes them for thousands, and would read all relations.
    FROM named AS n CROSS JOIN LATERAL (SELECT k.oid, k.reltype FROM pg_class AS k WHERE k.oid = n.id OFFSET 0) AS c
    WHERE c.oid <> n.ev_class
    GROUP BY n.ev_class, c.oid, c.reltype;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.relations_named(regclass) IS
    'Relations named by a view and by each view that it reads: whether a whole row is used there, and whether it is '
    'read without its children (ONLY).';

CREATE OR REPLACE FUNCTION pgtrickle_private.query_relations(view regclass)
    RETURNS TABLE (relid oid, relkind "char", whole_row boolean, only_itself boolean)
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT c.oid, c.relkind, bool_or(n.whole_row), bool_or(n.only_itself)
    FROM relations_named(view) AS n JOIN pg_class AS c ON c.oid = n.relid
    GROUP BY c.oid, c.relkind;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.query_relations(regclass) IS
    'Relations a view names, itself or through other views: whether a whole row of it is used, and whether it is read '
    'without its children (ONLY).';

CREATE OR REPLACE FUNCTION pgtrickle_private.columns_read(view regclass, source regclass, whole_row boolean)
    RETURNS text[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT ARRAY(
            SELECT a.attname::text FROM pg_attribute AS a
            WHERE a.attrelid = source AND a.attnum > 0 AND NOT a.attisdropped
                AND (whole_row OR EXISTS (
                    SELECT FROM query_trees(view) AS t JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass
                        AND d.objid = t.rule
                    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = source AND d.refobjsubid = a.attnum))
            ORDER BY a.attnum));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.columns_read(regclass, regclass, boolean) IS
    'Columns of the source that a view reads, itself or through other views.';

-- What a cast or a function takes from the collation of a domain is not printed, but every node names its collation.
CREATE OR REPLACE FUNCTION pgtrickle_private.is_bytewise(view regclass) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
BEGIN
    RETURN (
        SELECT NOT EXISTS (
            SELECT FROM pg_collation AS l
            WHERE NOT l.collisdeterministic AND l.oid::text IN (
                SELECT unnest(string_to_array(m[1], ' '))
                FROM query_trees(view) AS t
                CROSS JOIN LATERAL regexp_matches(t.tree, ':\w*coll\w* (?:\(o )?(\d+(?: \d+)*)', 'gi') AS m)));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.is_bytewise(regclass) IS
    'Whether no collation that a view uses, itself or through other views, holds different texts for equal.';

CREATE OR REPLACE FUNCTION pgtrickle_private.source_obstacle(view regclass, source regclass, only_itself boolean)
    RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT COALESCE(
            capture_obstacle(source),
            CASE WHEN only_itself AND cardinality(capture_relations(source)) > 1
                THEN 'is read without its children (ONLY)' END,
            (SELECT 'is read by a system column'
             FROM query_trees(view) AS t JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = t.rule
             WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = source AND d.refobjsubid < 0 LIMIT 1)));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.source_obstacle(regclass, regclass, boolean) IS
    'Why what the view reads of this source cannot be captured, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.query_sources(view regclass)
    RETURNS TABLE (source_relid regclass, source_type text, columns_used text[], obstacle text)
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT r.relid::regclass,
           CASE WHEN o.obstacle IS NOT NULL THEN 'UNCAPTURED'
                WHEN EXISTS (SELECT FROM pgt_stream_tables WHERE pgt_relid = r.relid) THEN 'STREAM_TABLE'
                ELSE 'TABLE' END,
           columns_read(view, r.relid, r.whole_row),
           o.obstacle
    FROM query_relations(view) AS r
    CROSS JOIN LATERAL source_obstacle(view, r.relid, r.only_itself) AS o(obstacle)
    WHERE r.relid NOT IN (SELECT views_below(view));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.query_sources(regclass) IS
    'Direct sources of a hidden view after expansion of ordinary views.';

CREATE OR REPLACE FUNCTION pgtrickle_private.query_functions(view regclass) RETURNS SETOF regprocedure
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
BEGIN
    RETURN QUERY
    WITH RECURSIVE called AS (
        SELECT m[1]::oid AS oid
        FROM query_trees(view) AS t
        CROSS JOIN LATERAL regexp_matches(t.tree, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') AS m
        UNION
        -- Arguments left out are not in the tree: PostgreSQL adds their defaults when it plans.
        SELECT m[1]::oid
        FROM called CROSS JOIN LATERAL (SELECT p.proargdefaults::text AS tree FROM pg_proc AS p WHERE p.oid = called.oid
            AND p.pronargdefaults > 0 OFFSET 0) AS d
        CROSS JOIN LATERAL regexp_matches(d.tree, ':(?:funcid|opfuncid) (\d+)', 'g') AS m)
    SELECT oid::regprocedure FROM called WHERE oid <> 0
    UNION
    SELECT part::regprocedure
    FROM called JOIN pg_aggregate AS a ON a.aggfnoid = called.oid
    CROSS JOIN LATERAL unnest(ARRAY[a.aggtransfn, a.aggfinalfn]) AS part
    WHERE part <> 0;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.query_functions(regclass) IS
    'Functions a view calls, itself or through other views: operators, aggregates and defaults of arguments included.';

-- Casts through text and the constructors of XML and JSON are written as such, and a function that takes any type may
-- write its values.
CREATE OR REPLACE FUNCTION pgtrickle_private.writes_values(tree text) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
BEGIN
    RETURN tree ~ '\{(COERCEVIAIO|XMLEXPR|JSONCONSTRUCTOREXPR|JSONEXPR) ' OR EXISTS (
        SELECT FROM regexp_matches(tree, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') AS n
            JOIN pg_proc AS p ON p.oid = n[1]::oid
        WHERE p.proname <> 'count'
            AND p.proargtypes::oid[] && ARRAY['"any"', 'anyelement', 'anynonarray', 'anyarray', 'record',
            'anycompatible', 'anycompatiblearray', 'anycompatiblenonarray']::regtype[]::oid[]);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.writes_values(text) IS
    'Whether the tree of a query may turn values of any type into text, XML or JSON.';

CREATE OR REPLACE FUNCTION pgtrickle_private.parts_of_types(types oid[]) RETURNS SETOF oid
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    WITH RECURSIVE held(id) AS (
        SELECT unnest(types)
        UNION
        SELECT p.part FROM held AS h JOIN pg_type AS y ON y.oid = h.id CROSS JOIN LATERAL (
            SELECT unnest(ARRAY[y.typelem, y.typbasetype])
            UNION ALL SELECT a.atttypid FROM pg_attribute AS a
                WHERE a.attrelid = y.typrelid AND a.attnum > 0 AND NOT a.attisdropped
            UNION ALL SELECT r.rngsubtype FROM pg_range AS r WHERE y.oid IN (r.rngtypid, r.rngmultitypid)
        ) AS p(part))
    SELECT id FROM held WHERE id <> 0;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.parts_of_types(oid[]) IS
    'Some types and those that they are made of, at any depth: of arrays, domains, rows and ranges.';

CREATE OR REPLACE FUNCTION pgtrickle_private.types_within(tree text) RETURNS SETOF oid
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
BEGIN
    RETURN QUERY SELECT parts_of_types(ARRAY(
        SELECT DISTINCT m[1]::oid FROM regexp_matches(tree, ':\w*type(?:id)? (\d+)', 'g') AS m));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.types_within(text) IS
    'Types of the expressions in the tree of a query, and those that they are made of.';

-- What a function of users writes, nobody knows. Whether rows are equal, or NULL, depends on their columns, too.
CREATE OR REPLACE FUNCTION pgtrickle_private.labels_shown(view regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    -- Without any enum none of it is asked, which takes longer than all else.
    writes CONSTANT boolean := EXISTS (SELECT FROM pg_enum) AND (
        EXISTS (SELECT FROM query_trees(view) AS t
                WHERE t.tree LIKE '%{FIELDSELECT %' OR writes_values(t.tree))
        OR EXISTS (SELECT FROM relations_named(view) AS r WHERE r.whole_row)
        OR EXISTS (SELECT FROM functions_below(view))
        OR EXISTS (SELECT FROM query_functions(view) AS f JOIN pg_proc AS p ON p.oid = f
                   WHERE p.proname IN ('enum_first', 'enum_last', 'enum_range')));
BEGIN
    RETURN (
        SELECT string_agg(md5(l.label), ',' ORDER BY l.kind, l.id, l.place)
        FROM (SELECT DISTINCT types_within(t.tree) FROM query_trees(view) AS t) AS h(id) CROSS JOIN LATERAL (
            SELECT 'enum', e.oid, 0, e.enumlabel::text FROM pg_enum AS e WHERE e.enumtypid = h.id AND writes
            UNION ALL SELECT 'row', a.attrelid, a.attnum, a.attname::text
                FROM pg_type AS y JOIN pg_attribute AS a ON a.attrelid = y.typrelid AND a.attnum > 0
                WHERE y.oid = h.id
        ) AS l(kind, id, place, label));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.labels_shown(regclass) IS
    'The columns of rows that a view handles as values, and the labels of enums of which it may turn values into text, '
    'XML or JSON; or NULL.';
