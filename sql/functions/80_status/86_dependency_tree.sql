-- The graph of stream tables as a tree to be printed.

-- PL/pgSQL looks at the second expression only where the encoding has such characters.
CREATE OR REPLACE FUNCTION pgtrickle_private.drawn(lines text) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF getdatabaseencoding() <> 'UTF8' THEN
        RETURN lines;
    END IF;
    RETURN translate(lines, '|`+-', chr(9474) || chr(9492) || chr(9500) || chr(9472));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.drawn(text) IS
    'Lines of a tree, written with |, `, + and -, as the characters that Unicode has for them, if the database does.';

-- dag() lists each stream table once, below one of those that it reads; what it reads of base tables is hung below it.
CREATE OR REPLACE FUNCTION pgtrickle.dependency_tree()
    RETURNS TABLE (tree_line text, node text, node_type text, depth integer, status text, refresh_mode text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH RECURSIVE listed AS (
        SELECT d.place, d.relation, d.reads, (length(d.tree) - length(ltrim(d.tree))) / 4 - 1 AS depth
        FROM dag() WITH ORDINALITY
            AS d(tree, relation, kind, reads, groups, watermark, status, action, took, batch, place)
        WHERE d.kind = 'STREAM_TABLE'
    ), entry AS (
        SELECT row_number() OVER (ORDER BY e.place, e.leaf) AS id, e.* FROM (
            SELECT l.place, 0 AS leaf, l.relation AS node, 'stream_table' AS node_type, l.depth FROM listed AS l
            UNION ALL
            SELECT l.place, r.leaf, r.node, 'source_table', l.depth + 1
            FROM listed AS l CROSS JOIN LATERAL unnest(l.reads) WITH ORDINALITY AS r(node, leaf)
            WHERE r.node NOT IN (SELECT s.relation FROM listed AS s)) AS e
    ), child AS (
        SELECT e.*, p.parent, lead(e.id) OVER (PARTITION BY p.parent ORDER BY e.id) IS NULL AS is_last
        FROM entry AS e CROSS JOIN LATERAL (
            SELECT max(a.id) AS parent FROM entry AS a
            WHERE a.id < e.id AND a.depth = e.depth - 1 AND a.node_type = 'stream_table') AS p
    ), walk AS (
        SELECT c.id, '' AS below, c.node AS line FROM child AS c WHERE c.parent IS NULL
        UNION ALL
        SELECT c.id, w.below || CASE WHEN c.is_last THEN '    ' ELSE drawn('|   ') END,
            w.below || drawn(CASE WHEN c.is_last THEN '`-- ' ELSE '+-- ' END) || c.node
        FROM walk AS w JOIN child AS c ON c.parent = w.id)
    SELECT w.line || CASE e.node_type WHEN 'source_table' THEN ' [src]' ELSE '' END, e.node, e.node_type,
        e.depth::integer, t.status, t.refresh_mode
    FROM walk AS w JOIN entry AS e USING (id)
        LEFT JOIN pgt_stream_tables AS t ON e.node_type = 'stream_table'
            AND format('%I.%I', t.pgt_schema, t.pgt_name) = e.node
    ORDER BY e.id
$$;
COMMENT ON FUNCTION pgtrickle.dependency_tree() IS
    'A tree to be printed: the stream tables that read base tables only, and below each its base tables and the stream '
    'tables that read it, each once. dependencies() has what each reads as pairs, dag() the graph from the sources on.';
