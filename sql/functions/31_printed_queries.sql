-- Stream tables are computed from the text that PostgreSQL prints of a query. For a few queries that text means another one.

CREATE OR REPLACE FUNCTION pgtrickle.grouping_keys(view regclass) RETURNS bigint
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT count(*) FROM pg_rewrite AS r, LATERAL regexp_matches(r.ev_action::text, ':tleSortGroupRef', 'g')
    WHERE r.ev_class = view AND r.ev_action::text LIKE '%:groupingSets ({%'
$$;
COMMENT ON FUNCTION pgtrickle.grouping_keys(regclass) IS
    'How many sort and group clauses a view with grouping sets has; 0 without grouping sets.';

CREATE OR REPLACE FUNCTION pgtrickle.read_back(query text, view_name text, OUT printed text, OUT keys bigint)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp SET client_min_messages = warning
AS $$
BEGIN
    EXECUTE format('CREATE VIEW %s AS %s', view_name, query);
    printed := pg_get_viewdef(view_name::regclass);
    keys := grouping_keys(view_name::regclass);
    EXECUTE format('DROP VIEW %s', view_name);
EXCEPTION WHEN OTHERS THEN
    IF SQLSTATE !~ '^(42|0A)' OR SQLSTATE = '42501' THEN
        RAISE;
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.read_back(text, text) IS
    'What PostgreSQL prints of a printed query once it has read it, and its grouping_keys(); NULL if it cannot read it.';

-- Casts and aliases may be spelled out at the first reading. What changes at the second one, too, is another query.
-- Grouping keys belong to the output columns that they were written for, but only their expressions are printed.
CREATE OR REPLACE FUNCTION pgtrickle.refuse_misprinted(view regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    below regclass;
    printed text;
    first record;
BEGIN
    FOR below IN SELECT b::regclass FROM views_below(view) AS b ORDER BY b LOOP
        printed := pg_get_viewdef(below);
        first := read_back(printed, view::text || '_printed');
        IF first.printed IS NULL
            OR first.printed <> printed
               AND first.printed IS DISTINCT FROM (read_back(first.printed, view::text || '_printed')).printed
        THEN
            PERFORM refuse_query(
                CASE WHEN below = view THEN 'PostgreSQL prints the query as another one, or as one that it cannot read'
                     ELSE format('PostgreSQL prints the view %s as another query, or as one that it cannot read', below) END,
                'Look at the text with pg_get_viewdef(); compare columns instead of ROW() of one field, and leave out VALUES without columns.');
        ELSIF first.keys <> grouping_keys(below) THEN
            PERFORM refuse_query('GROUPING SETS, ROLLUP or CUBE tell apart output columns that are the same expression',
                'Group in a subquery that gives each of them a name, such as (SELECT a AS x, a AS y FROM t) AS s.');
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle.refuse_misprinted(regclass) IS
    'Error 0A000 if the text that PostgreSQL prints of a view, or of one below it, means another query.';
