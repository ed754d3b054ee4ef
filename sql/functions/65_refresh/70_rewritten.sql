-- What TRUNCATE, an ALTER TABLE that rewrites, and COPY FREEZE do to a table shows in older snapshots too: to them the
-- table is empty, or has rows of a later time, whatever their cut says. What was planned in an older snapshot has the
-- names of that time, by which PostgreSQL finds what has them now, as after two tables, or two columns, exchanged
-- theirs. And of a partitioned table PostgreSQL reads the partitions that there are now. Then nothing may be made of
-- what they read.

-- The row of a relation in pg_class is that of the snapshot, its file and its name are those of now. The cache of the
-- session may be behind for relations that it did not lock; it comes up to date as soon as it locks one, as here for
-- their size. PostgreSQL by itself would plan this anew for each number, which takes longer than to run it.
CREATE OR REPLACE FUNCTION pgtrickle_private.rewritten_source(p_pgt_id bigint, p_read_elsewhere boolean) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    relids CONSTANT oid[] := ARRAY(
        SELECT unnest(COALESCE(t.relations, capture_relations(d.source_relid)) || to_regclass(t.buffer)::oid)
        FROM pgt_dependencies AS d LEFT JOIN pgt_change_tracking AS t USING (source_relid) WHERE d.pgt_id = p_pgt_id);
BEGIN
    IF p_read_elsewhere THEN
        PERFORM pg_relation_size(relid, 'init') FROM unnest(relids) AS relid;
    END IF;
    RETURN COALESCE((
        SELECT min(format('%I.%I', n.nspname, c.relname))
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        -- Some system catalogs have their files listed elsewhere.
        WHERE c.oid = ANY (relids) AND (c.relkind IN ('r', 'm') AND c.relfilenode <> 0
                AND pg_relation_filenode(c.oid) IS DISTINCT FROM c.relfilenode
            OR c.relkind = 'p' AND ARRAY(SELECT p.relid::oid FROM pg_partition_tree(c.oid) AS p ORDER BY 1)
                <> capture_relations(c.oid))), (
        SELECT min(format('%I.%I', n.nspname, c.relname))
        FROM (
            SELECT d.source_relid::oid, a.attnum, a.attname
            FROM pgt_dependencies AS d
                LEFT JOIN pg_attribute AS a ON a.attrelid = d.source_relid AND a.attname = ANY (d.columns_used)
            WHERE d.pgt_id = p_pgt_id
            UNION ALL
            -- A view is read by the name that it has in the query.
            SELECT d.refobjid, a.attnum, a.attname
            FROM pgt_stream_tables AS s
                JOIN pg_rewrite AS r ON r.ev_class = s.view_relid
                JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
                    AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> s.view_relid
                JOIN pg_class AS v ON v.oid = d.refobjid AND v.relkind = 'v'
                LEFT JOIN pg_attribute AS a ON a.attrelid = v.oid AND a.attnum = d.refobjsubid AND a.attnum > 0
            WHERE s.pgt_id = p_pgt_id) AS r(relid, number, column_name)
            JOIN pg_class AS c ON c.oid = r.relid
            JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE (pg_identify_object('pg_class'::regclass, r.relid, COALESCE(r.number, 0))).identity IS DISTINCT FROM
            concat_ws('.', quote_ident(n.nspname), quote_ident(c.relname), quote_ident(r.column_name))));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.rewritten_source(bigint, boolean) IS
    'A source of a stream table that was truncated, rewritten or renamed, or of which a partition came or went, or its '
    'change buffer that was rewritten, since the snapshot of the transaction, which has read it, or other sessions '
    'have in the same snapshot; NULL if there is none.';
