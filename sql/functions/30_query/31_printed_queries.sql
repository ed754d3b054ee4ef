-- Stream tables are computed from the text that PostgreSQL prints of a query. For a few queries that text means another one.

-- Keys belong to the output columns that they were written for, but only their expressions are printed; the columns of a
-- join's alias are printed without the names that its whole rows give them.
CREATE OR REPLACE FUNCTION pgtrickle.unprinted_parts(view regclass, OUT keys bigint, OUT names text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT CASE WHEN tree LIKE '%:groupingSets ({%' THEN (SELECT count(*) FROM regexp_matches(tree, ':tleSortGroupRef', 'g')) END,
        CASE WHEN tree ~ ':varattno 0 :vartype 2249 |:row_format 2 ' THEN (
            SELECT string_agg(m.part[1], ' ' ORDER BY m.place)
            FROM regexp_matches(tree, '(?::eref \{ALIAS :aliasname \S+|:row_format 2) :colnames \(([^)]*)\)', 'g')
                WITH ORDINALITY AS m(part, place)) END
    FROM (SELECT ev_action::text AS tree FROM pg_rewrite WHERE ev_class = view) AS r
$$;
COMMENT ON FUNCTION pgtrickle.unprinted_parts(regclass) IS
    'What the text of a view does not show: the number of its sort and group clauses if it has grouping sets, and the names of the columns of its whole rows.';

CREATE OR REPLACE FUNCTION pgtrickle.read_back(query text, view_name text, OUT printed text, OUT keys bigint, OUT names text)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp SET client_min_messages = warning
AS $$
BEGIN
    EXECUTE format('CREATE VIEW %s AS %s', view_name, query);
    SELECT pg_get_viewdef(view_name::regclass), u.keys, u.names INTO printed, keys, names FROM unprinted_parts(view_name::regclass) AS u;
    EXECUTE format('DROP VIEW %s', view_name);
EXCEPTION WHEN OTHERS THEN
    IF SQLSTATE !~ '^(42|0A)' OR SQLSTATE = '42501' THEN
        RAISE;
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.read_back(text, text) IS
    'What PostgreSQL prints of a printed query once it has read it, and its unprinted_parts(); NULL if it cannot read it.';

-- Casts and aliases may be spelled out at the first reading. What changes at the second one, too, is another query.
CREATE OR REPLACE FUNCTION pgtrickle.refuse_misprinted(view regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    below regclass;
    own record;
    again record;
BEGIN
    FOR below IN SELECT b::regclass FROM views_below(view) AS b ORDER BY b LOOP
        SELECT pg_get_viewdef(below) AS printed, u.* INTO own FROM unprinted_parts(below) AS u;
        again := read_back(own.printed, view::text || '_printed');
        IF again.printed IS NULL
            OR again.printed <> own.printed
               AND again.printed IS DISTINCT FROM (read_back(again.printed, view::text || '_printed')).printed
        THEN
            PERFORM refuse_query(
                CASE WHEN below = view THEN 'PostgreSQL prints the defining query as another one, or as text that it cannot read itself'
                     ELSE format('PostgreSQL prints the view %s as another query, or as text that it cannot read itself', below) END,
                'Look at the text with pg_get_viewdef(); compare columns instead of ROW() of one field, and leave out VALUES without columns.');
        ELSIF again.keys <> own.keys THEN
            PERFORM refuse_query('GROUPING SETS, ROLLUP or CUBE tell apart output columns that are the same expression',
                'Group in a subquery that gives each of them a name, such as (SELECT a AS x, a AS y FROM t) AS s.');
        ELSIF again.names IS DISTINCT FROM own.names THEN
            PERFORM refuse_query('the defining query uses whole rows whose columns PostgreSQL prints under other names',
                'Use the whole row of a subquery whose columns have a name each, such as (SELECT i FROM a JOIN b USING (i)) AS x.');
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle.refuse_misprinted(regclass) IS
    'Error 0A000 if the text that PostgreSQL prints of a view, or of one below it, means another query.';
