-- Generated SQL finds names in pg_catalog and pgtrickle_state alone: whoever may create something in a schema of the
-- creator's search_path would otherwise offer it a better match, which runs as the refresher. Nobody but the owner of
-- the catalog can create anything in these two. What a query needs beyond them is found out here.

CREATE OR REPLACE FUNCTION pgtrickle_private.types_used(view regclass) RETURNS SETOF oid
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
BEGIN
    RETURN QUERY
    WITH RECURSIVE used(id) AS (
        SELECT DISTINCT m[1]::oid
        FROM query_trees(view) AS t CROSS JOIN LATERAL regexp_matches(t.tree, ':\w*type(?:id)? (\d+)', 'g') AS m
        UNION
        SELECT y.typbasetype FROM used AS u JOIN pg_type AS y ON y.oid = u.id WHERE y.typbasetype <> 0)
    SELECT id FROM used WHERE id <> 0;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.types_used(regclass) IS
    'Types of the expressions of a view and of every view it reads, and those that its domains are made of.';

-- PostgreSQL looks for the operator = by its name where SQL does not write one: for IN, USING, NULLIF, CASE x WHEN and
-- IS DISTINCT FROM. That of an extension's type lies in the extension's schema. Its mirror is written out when a query
-- is planned, so that indexes serve it. Only superusers, and those who may create an extension, put anything into
-- pg_amop.
CREATE OR REPLACE FUNCTION pgtrickle_private.mirrored_operators() RETURNS TABLE (mirror oid, mirrored oid)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT o.oid, d.refobjid
    FROM pg_operator AS o JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = o.oprcode
        AND d.refclassid = 'pg_operator'::regclass
    WHERE o.oprnamespace = 'pgtrickle_state'::regnamespace
$$;
COMMENT ON FUNCTION pgtrickle_private.mirrored_operators() IS
    'The operators in pgtrickle_state by which generated SQL finds those of extensions, and what they stand for.';

CREATE OR REPLACE FUNCTION pgtrickle_private.mirror_operator(operator oid) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    o pg_operator;
    p pg_proc;
    made text := format('pgtrickle_state.equal_%s', operator);
BEGIN
    SELECT * INTO o FROM pg_operator WHERE oid = operator;
    SELECT * INTO p FROM pg_proc WHERE oid = o.oprcode;
    EXECUTE format('CREATE OR REPLACE FUNCTION %s(%s, %s) RETURNS boolean LANGUAGE sql %s PARALLEL %s RETURN $1 '
        'OPERATOR(%s.=) $2',
                   made, format_type(o.oprleft, NULL), format_type(o.oprright, NULL),
                   CASE p.provolatile WHEN 'i' THEN 'IMMUTABLE' ELSE 'STABLE' END,
                   CASE p.proparallel WHEN 's' THEN 'SAFE' ELSE 'UNSAFE' END, o.oprnamespace::regnamespace);
    PERFORM hand_over_function(to_regproc(made)::regprocedure);
    EXECUTE format('CREATE OPERATOR pgtrickle_state.= (FUNCTION = %s, LEFTARG = %s, RIGHTARG = %s, RESTRICT = eqsel, '
        'JOIN = eqjoinsel)',
                   made, format_type(o.oprleft, NULL), format_type(o.oprright, NULL));
    EXECUTE format('ALTER OPERATOR pgtrickle_state.= (%s, %s) OWNER TO %I',
                   format_type(o.oprleft, NULL), format_type(o.oprright, NULL), catalog_owner());
EXCEPTION
    -- Another session mirrored it meanwhile.
    WHEN unique_violation OR duplicate_function THEN NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.mirror_operator(oid) IS 'Lets generated SQL find an equality under its name.';

CREATE OR REPLACE FUNCTION pgtrickle_private.mirror_equalities(view regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM mirror_operator(e.oid)
    FROM (
        SELECT DISTINCT ON (o.oprleft, o.oprright) o.oid, o.oprleft, o.oprright
        FROM types_used(view) AS t(id) JOIN pg_operator AS o ON t.id IN (o.oprleft, o.oprright)
            JOIN pg_amop AS a ON a.amopopr = o.oid JOIN pg_am AS m ON m.oid = a.amopmethod
        WHERE t.id >= 16384 AND o.oprname = '=' AND (m.amname, a.amopstrategy) IN (('btree', 3), ('hash', 1))
            AND o.oprnamespace NOT IN ('pg_catalog'::regnamespace, 'pgtrickle_state'::regnamespace)
        ORDER BY o.oprleft, o.oprright, o.oid) AS e
    WHERE NOT EXISTS (SELECT FROM pg_operator AS o WHERE o.oprnamespace = 'pgtrickle_state'::regnamespace
                      AND (o.oprleft, o.oprright) = (e.oprleft, e.oprright));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.mirror_equalities(regclass) IS
    'Lets generated SQL find the equalities of the types that a view uses where an extension brought these.';

CREATE OR REPLACE FUNCTION pgtrickle_private.drop_idle_mirrors() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET client_min_messages = warning
AS $$
DECLARE
    idle record;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_operator WHERE oprnamespace = 'pgtrickle_state'::regnamespace) THEN
        RETURN;
    END IF;
    FOR idle IN
        SELECT o.oid, o.oprcode FROM mirrored_operators() AS m JOIN pg_operator AS o ON o.oid = m.mirror
        WHERE NOT EXISTS (SELECT FROM pgt_stream_tables AS t JOIN pg_class AS c ON c.oid = t.view_relid
                          CROSS JOIN LATERAL types_used(t.view_relid) AS u(id) WHERE u.id IN (o.oprleft, o.oprright))
    LOOP
        EXECUTE format('DROP OPERATOR %s', idle.oid::regoperator);
        EXECUTE format('DROP FUNCTION %s', idle.oprcode::regprocedure);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.drop_idle_mirrors() IS
    'Drops the mirrored equalities that no stream table uses any more, so that their extension can be dropped.';

REVOKE ALL ON FUNCTION pgtrickle_private.types_used(regclass), pgtrickle_private.mirrored_operators(),
    pgtrickle_private.mirror_operator(oid), pgtrickle_private.mirror_equalities(regclass),
    pgtrickle_private.drop_idle_mirrors() FROM PUBLIC;
