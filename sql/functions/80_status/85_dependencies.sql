-- What stream tables read.

CREATE OR REPLACE FUNCTION pgtrickle.dependencies()
    RETURNS TABLE (stream_table text, source text, source_type text, depth integer)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH RECURSIVE tree AS (
        SELECT d.pgt_id, d.source_relid, d.source_type, 1 AS depth FROM pgt_dependencies AS d
        UNION
        SELECT tree.pgt_id, d.source_relid, d.source_type, tree.depth + 1
        FROM tree JOIN pgt_stream_tables AS t ON t.pgt_relid = tree.source_relid
            JOIN pgt_dependencies AS d ON d.pgt_id = t.pgt_id
        -- No shortest way is longer than there are stream tables, others may go round in a cycle.
        WHERE tree.depth <= (SELECT count(*) FROM pgt_stream_tables))
    SELECT format('%I.%I', t.pgt_schema, t.pgt_name), qualified_name(tree.source_relid), tree.source_type,
        min(tree.depth)
    FROM tree JOIN pgt_stream_tables AS t USING (pgt_id)
    GROUP BY 1, 2, 3 ORDER BY 1, 4, 2
$$;
COMMENT ON FUNCTION pgtrickle.dependencies() IS
    'What each stream table reads, directly (depth 1) and through other stream tables.';
