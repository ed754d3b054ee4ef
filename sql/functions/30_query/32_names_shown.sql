-- Names that a query gives or finds, and shows as they are called at the time.

-- 'simple'::regconfig is nothing but the first argument of to_tsvector() and the like: it is not shown.
CREATE OR REPLACE FUNCTION pgtrickle_private.without_search_configurations(tree text) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
BEGIN
    IF tree NOT LIKE '%:consttype 3734 %' THEN
        RETURN tree;
    END IF;
    RETURN regexp_replace(tree, format('\{FUNCEXPR :funcid (?:%s) [^{}]*:args \(\{CONST :consttype 3734 [^{}]*\}', (
        SELECT string_agg(p.oid::text, '|') FROM pg_proc AS p
        WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proargtypes[0] = 3734
            AND p.proname ~ '^(to_tsvector|json.*_to_tsvector|.*to_tsquery|ts_headline)$')), '', 'g');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.without_search_configurations(text) IS
    'The tree of a query without the text search configurations that its calls of to_tsvector() and the like name.';

-- How a regclass looks as text depends on the search_path, and on what is renamed.
CREATE OR REPLACE FUNCTION pgtrickle_private.names_shown(view regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT format('the text of a value of type %s, which names something as it is called, and found, at the time',
            w::regtype)
        FROM query_trees(view) AS t
            CROSS JOIN LATERAL types_within(without_search_configurations(t.tree)) AS w
        WHERE w IN (24, 2202, 2203, 2204, 2205, 2206, 3734, 3769, 4089, 4096, 4191) AND writes_values(t.tree)
        ORDER BY 1 LIMIT 1);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.names_shown(regclass) IS
    'Why a view may show how something is named, or NULL: it turns an identifier such as a regclass into text, be it a '
    'part of another value.';
