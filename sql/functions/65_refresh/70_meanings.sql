-- What PostgreSQL takes as it is now, whatever snapshot reads: the functions that a query calls, the labels of enums,
-- the expressions of virtual columns, the children of a table. What is altered after a snapshot, and put back before
-- the next one, leaves no other trace than the transactions that wrote these rows of the system catalogs.

CREATE OR REPLACE FUNCTION pgtrickle_private.meanings() RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp SET jit = off
AS $$
BEGIN
    RETURN concat_ws(' ',
        (SELECT sum(hash_record_extended(ROW(p.oid, p.xmin), 0)) FROM pg_proc AS p
         WHERE p.oid >= 16384 AND p.pronamespace <> ALL (ARRAY['pgtrickle', 'pgtrickle_private', 'pgtrickle_changes']
             ::regnamespace[])),
        (SELECT sum(hash_record_extended(ROW(l.oid, l.xmin), 0)) FROM pg_enum AS l),
        (SELECT sum(hash_record_extended(ROW(i.inhrelid, i.inhparent, i.xmin), 0)) FROM pg_inherits AS i),
        (SELECT sum(hash_record_extended(ROW(d.oid, d.xmin), 0)) FROM pg_attrdef AS d
            JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
         WHERE a.attgenerated = 'v' AND current_setting('server_version_num')::integer >= 180000));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.meanings() IS
    'A text that changes when anything was altered that PostgreSQL takes as it is, whatever snapshot reads.';

CREATE OR REPLACE FUNCTION pgtrickle_private.meaning_of(stream_table pgtrickle.pgt_stream_tables) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp SET jit = off
AS $$
DECLARE
    relations CONSTANT oid[] := ARRAY(SELECT DISTINCT unnest(capture_relations(d.source_relid))
        FROM pgt_dependencies AS d WHERE d.pgt_id = (stream_table).pgt_id);
BEGIN
    RETURN concat_ws(' ',
        (SELECT sum(hash_record_extended(ROW(p.oid, p.xmin), 0))
         FROM functions_below((stream_table).view_relid) AS f(oid) JOIN pg_proc AS p USING (oid)),
        (SELECT sum(hash_record_extended(ROW(l.oid, l.xmin), 0)) FROM pg_enum AS l WHERE EXISTS (
            SELECT FROM pgt_dependencies AS d JOIN pg_attribute AS a ON a.attrelid = d.source_relid
                AND a.attname = ANY (d.columns_used)
            WHERE d.pgt_id = (stream_table).pgt_id AND a.atttypid >= 16384)),
        (SELECT sum(hash_record_extended(ROW(i.inhrelid, i.inhparent, i.xmin), 0)) FROM pg_inherits AS i
         WHERE i.inhparent = ANY (relations)),
        (SELECT sum(hash_record_extended(ROW(d.oid, d.xmin), 0)) FROM pg_attrdef AS d
            JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
         WHERE d.adrelid = ANY (relations) AND a.attgenerated = 'v'));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.meaning_of(pgtrickle.pgt_stream_tables) IS
    'The same for what a stream table reads and calls.';
