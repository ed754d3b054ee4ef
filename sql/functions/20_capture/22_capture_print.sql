-- Whether anything was done to capture between two moments, of which the later one may show what was not captured.

-- Rows of the catalogs carry the transaction that wrote them. Left to itself, PostgreSQL would read all catalogs.
CREATE OR REPLACE FUNCTION pgtrickle_private.capture_print(sources bigint[]) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
    WITH parts(relid) AS MATERIALIZED (
        SELECT DISTINCT r FROM pgt_change_tracking AS t
            CROSS JOIN LATERAL unnest(t.relations || to_regclass(t.buffer)::oid) AS r
        WHERE t.source_relid::oid::bigint = ANY (sources)
    )
    SELECT concat_ws(' ',
        -- Since when its columns are captured changes where a gap was noted and settled.
        (SELECT sum(hashtextextended(t.captured_columns::text, 0)) FROM pgt_change_tracking AS t
            WHERE t.source_relid::oid::bigint = ANY (sources)),
        (SELECT sum(hash_record_extended(ROW(a.attrelid, a.attnum, a.xmin), 0)) FROM parts
            JOIN pg_attribute AS a ON a.attrelid = parts.relid AND a.attnum > 0),
        (SELECT sum(hash_record_extended(ROW(t.oid, t.xmin), 0)) FROM parts
            JOIN pg_trigger AS t ON t.tgrelid = parts.relid),
        (SELECT sum(hash_record_extended(ROW(i.inhrelid, i.inhparent, i.xmin), 0)) FROM parts
            JOIN pg_inherits AS i ON i.inhparent = parts.relid),
        (SELECT sum(hash_record_extended(ROW(i.inhrelid, i.inhparent, i.xmin), 0)) FROM parts
            JOIN pg_inherits AS i ON i.inhrelid = parts.relid),
        (SELECT sum(hash_record_extended(ROW(g.source_relid, g.xmin), 0)) FROM pgt_capture_gaps AS g
            WHERE g.source_relid::oid::bigint = ANY (sources)))
$$;
COMMENT ON FUNCTION pgtrickle_private.capture_print(bigint[]) IS
    'A text that changes when anything was done by which changes of these sources may have been missed.';
