-- How large sources are, as the planner is told.

-- Statistics say of a table that was never analyzed, or when it was empty, that it has no rows; autovacuum passes by
-- what has few. PostgreSQL's planner asks for its size, too.
CREATE OR REPLACE FUNCTION pgtrickle_private.size_of(relation regclass, OUT pages bigint, OUT rows bigint)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    SELECT COALESCE(sum(CASE WHEN c.reltuples > 0 THEN c.relpages ELSE now.pages END), 0)::bigint,
        COALESCE(sum(CASE WHEN c.reltuples > 0 THEN ceil(c.reltuples) ELSE greatest(80 * now.pages, 1) END)
            FILTER (WHERE c.relkind <> 'f'), 0)::bigint
    INTO pages, rows
    FROM pg_class AS c CROSS JOIN LATERAL (
        SELECT CASE WHEN c.reltuples <= 0
            THEN COALESCE(pg_relation_size(c.oid), 0) / current_setting('block_size')::integer END) AS now(pages)
    WHERE c.relkind <> 'p' AND c.oid = ANY (relation::oid || ARRAY(
        SELECT p.relid::oid FROM pg_partition_tree(relation) AS p WHERE p.isleaf AND p.relid <> relation));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.size_of(regclass) IS
    'How many pages and rows a table, or all partitions of one, are expected to have, one at least; a foreign one '
    'has none.';
