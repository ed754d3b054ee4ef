-- The graph of sources and stream tables.

-- Each relation hangs below one of the sources that are farthest from the base tables, so it is listed once.
CREATE OR REPLACE FUNCTION pgtrickle.dag()
    RETURNS TABLE (tree text, relation text, kind text, reads text[], watermark_groups text[], watermark timestamptz,
                   status text, last_action text, last_duration interval, batch bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET jit = off
AS $$
    WITH RECURSIVE node AS (
        SELECT t.pgt_relid AS relid FROM pgt_stream_tables AS t
        UNION SELECT d.source_relid FROM pgt_dependencies AS d
        UNION SELECT unnest(g.sources) FROM pgt_watermark_groups AS g),
    edge AS (
        SELECT d.source_relid AS source, t.pgt_relid AS reader,
               -- What reads a stream table that is not older than itself was altered, and may have closed a cycle.
               CASE WHEN u.pgt_id >= t.pgt_id THEN t.pgt_id IN (SELECT a.pgt_id FROM upstream_tables(u.pgt_id) AS a)
                   ELSE false END AS closing
        FROM pgt_dependencies AS d JOIN pgt_stream_tables AS t USING (pgt_id)
            LEFT JOIN pgt_stream_tables AS u ON u.pgt_relid = d.source_relid),
    reached AS (
        SELECT n.relid, 0 AS depth FROM node AS n
        UNION
        SELECT e.reader, r.depth + 1 FROM reached AS r JOIN edge AS e ON e.source = r.relid
            WHERE NOT e.closing),
    placed AS (
        SELECT r.relid, max(r.depth) AS depth,
               -- As pgt_status() names it.
               COALESCE((SELECT format('%I.%I', t.pgt_schema, t.pgt_name) FROM pgt_stream_tables AS t
                   WHERE t.pgt_relid = r.relid),
                        qualified_name(r.relid)) COLLATE "C" AS name
        FROM reached AS r GROUP BY r.relid),
    -- Without MATERIALIZED the planner joins all of one depth with all of the next.
    open_edge AS MATERIALIZED (
        SELECT p.relid, p.depth, e.source FROM placed AS p JOIN edge AS e ON e.reader = p.relid WHERE NOT e.closing),
    below AS (
        SELECT DISTINCT ON (o.relid) o.relid, o.source
        FROM open_edge AS o JOIN placed AS s ON s.relid = o.source AND s.depth = o.depth - 1
        ORDER BY o.relid, s.name),
    reading AS (
        SELECT e.reader, array_agg(s.name::text ORDER BY s.name) AS names
        FROM edge AS e JOIN placed AS s ON s.relid = e.source GROUP BY e.reader),
    walk AS (
        SELECT p.relid, ARRAY[p.name] AS path FROM placed AS p
            WHERE NOT EXISTS (SELECT FROM below AS b WHERE b.relid = p.relid)
        UNION ALL
        SELECT p.relid, w.path || p.name FROM walk AS w JOIN below AS b ON b.source = w.relid
            JOIN placed AS p ON p.relid = b.relid)
    SELECT repeat('    ', cardinality(w.path) - 1) || p.name, p.name,
           CASE WHEN t.pgt_id IS NOT NULL THEN 'STREAM_TABLE' ELSE
               COALESCE((SELECT min(d.source_type) FROM pgt_dependencies AS d WHERE d.source_relid = p.relid), 'TABLE')
                   END,
           COALESCE(o.names, '{}'),
           ARRAY(SELECT g.group_name FROM pgt_watermark_groups AS g
               WHERE p.relid = ANY (g.sources) ORDER BY g.group_name),
           CASE WHEN t.pgt_id IS NOT NULL THEN t.effective_watermark ELSE m.watermark END,
           t.status, h.action, h.finished_at - h.started_at, CASE WHEN t.pgt_id IS NOT NULL THEN t.effective_batch
               ELSE m.batch END
    FROM placed AS p JOIN walk AS w USING (relid)
    LEFT JOIN reading AS o ON o.reader = p.relid
    LEFT JOIN pgt_stream_tables AS t ON t.pgt_relid = p.relid
    LEFT JOIN pgt_watermarks AS m ON m.source_relid = p.relid
    LEFT JOIN LATERAL (
        SELECT * FROM pgt_refresh_history AS a WHERE a.pgt_id = t.pgt_id
            AND a.status <> 'SKIPPED' ORDER BY a.refresh_id DESC LIMIT 1) AS h ON true
    ORDER BY w.path
$$;
COMMENT ON FUNCTION pgtrickle.dag() IS
    'Every source and stream table once: as a line of a tree below what it reads, with all that it reads, the '
    'watermark groups it is in, its watermark or batch '
    '(of a stream table the effective one), and the last refresh that was not skipped.';
