-- Stream tables are computed from the text that PostgreSQL prints of a query. For a few queries that text means another
-- one: these are refused where that shows in the text, and else read as a whole by their view.

-- Keys belong to the output columns that they were written for, but only their expressions are printed; the columns of
-- a join's alias are printed without the names that its whole rows give them. And a row that got another column since
-- takes the name of what stands beside it, such as that of the ordinality. Whole rows of a table have its own type, so
-- that of a table PostgreSQL need not keep what its columns were called.
DROP FUNCTION IF EXISTS pgtrickle_private.unprinted_parts(regclass);
CREATE OR REPLACE FUNCTION pgtrickle_private.unprinted_parts(
        view regclass, OUT keys bigint, OUT names text, OUT widths text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
    SELECT CASE WHEN tree LIKE '%:groupingSets ({%'
        THEN (SELECT count(*) FROM regexp_matches(tree, ':tleSortGroupRef', 'g')) END,
        (SELECT string_agg(m.part[1], ' ' ORDER BY m.place)
            FROM regexp_matches(tree, CASE WHEN tree LIKE '%:varattno 0 :vartype 2249 %'
                    THEN '(?::eref \{ALIAS :aliasname \S+(?= :colnames \([^)]*\)\} :rtekind [1-9])|:row_format 2)'
                    ELSE ':row_format 2' END || ' :colnames \(([^)]*)\)', 'g')
                WITH ORDINALITY AS m(part, place)),
        CASE WHEN tree LIKE '%:funcordinality true%'
                OR regexp_count(tree, '\{RANGETBLFUNCTION ') > regexp_count(tree, ':rtekind 3 ') THEN (
            SELECT string_agg(m.part[1], ' ' ORDER BY m.place)
            FROM regexp_matches(tree, ':funccolcount (\d+)', 'g') WITH ORDINALITY AS m(part, place)) END
    FROM (SELECT ev_action::text AS tree FROM pg_rewrite WHERE ev_class = view) AS r
$$;
COMMENT ON FUNCTION pgtrickle_private.unprinted_parts(regclass) IS
    'What the text of a view does not show: the number of its sort and group clauses if it has grouping sets, the '
    'names of the columns of its whole rows, and how many columns its functions return if something stands beside '
    'them.';

DROP FUNCTION IF EXISTS pgtrickle_private.read_back(text, text);
CREATE OR REPLACE FUNCTION pgtrickle_private.read_back(query text, view_name text) RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET client_min_messages = warning
AS $$
DECLARE
    printed text;
BEGIN
    EXECUTE format('CREATE VIEW %s AS %s', view_name, query);
    printed := pg_get_viewdef(view_name::regclass);
    EXECUTE format('DROP VIEW %s', view_name);
    RETURN printed;
EXCEPTION WHEN OTHERS THEN
    IF SQLSTATE !~ '^(42|0A)' OR SQLSTATE = '42501' THEN
        RAISE;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.read_back(text, text) IS
    'What PostgreSQL prints of a printed query once it has read it; NULL if it cannot read it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.unprinted_difference(view regclass, again regclass) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE
        WHEN o.keys <> a.keys
            THEN 'GROUPING SETS, ROLLUP or CUBE that tell apart output columns which are the same expression'
        WHEN o.names IS DISTINCT FROM a.names THEN 'whole rows whose columns PostgreSQL prints under other names'
        WHEN o.widths IS DISTINCT FROM a.widths
            THEN 'a function that returns rows with more columns than at creation' END
    FROM unprinted_parts(view) AS o, unprinted_parts(again) AS a
$$;
COMMENT ON FUNCTION pgtrickle_private.unprinted_difference(regclass, regclass) IS
    'What a view has that its text has not, from which the other view was made; or NULL.';

-- Casts and aliases may be spelled out at the first reading. What changes at the second one, too, is another query.
-- A text without needless quotes is what the planner parses, and what gives a name when something is appended to it.
CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_misprinted(view regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET quote_all_identifiers = off
AS $$
DECLARE
    below regclass;
    own text;
    again text;
BEGIN
    FOR below IN SELECT b::regclass FROM views_below(view) AS b ORDER BY b LOOP
        own := pg_get_viewdef(below);
        again := read_back(own, view::text || '_printed');
        IF again IS NULL OR again <> own AND again IS DISTINCT FROM read_back(again, view::text || '_printed') THEN
            PERFORM refuse_query(
                CASE WHEN below = view
                    THEN 'PostgreSQL prints the defining query as another one, or as text that it cannot read itself'
                     ELSE format('PostgreSQL prints the view %s as another query, or as text that it cannot read '
                         'itself', below) END,
                'Look at the text with pg_get_viewdef(); compare columns instead of ROW() of one field, and leave out '
                'VALUES without columns.');
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_misprinted(regclass) IS
    'Error 0A000 if the text that PostgreSQL prints of a view, or of one below it, means another query.';
