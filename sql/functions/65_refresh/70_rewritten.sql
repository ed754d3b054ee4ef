-- What TRUNCATE, an ALTER TABLE that rewrites, and COPY FREEZE do to a table shows in older snapshots too: to them the
-- table is empty, or has rows of a later time, whatever their cut says. Then nothing may be made of what they read. Nor
-- may it where a source was renamed and another table has its name, for sources are read by their names, or where it
-- has lost or gained partitions, for PostgreSQL reads those that there are now.

-- The row of a relation in pg_class is that of the snapshot, its file that of now. The cache of the session may be
-- behind for relations that it did not lock; it comes up to date as soon as it locks one, as here for their size.
CREATE OR REPLACE FUNCTION pgtrickle_private.rewritten_source(p_pgt_id bigint, p_read_elsewhere boolean) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    relids CONSTANT oid[] := ARRAY(
        SELECT unnest(COALESCE(t.relations, capture_relations(d.source_relid)) || to_regclass(t.buffer)::oid)
        FROM pgt_dependencies AS d LEFT JOIN pgt_change_tracking AS t USING (source_relid) WHERE d.pgt_id = p_pgt_id);
BEGIN
    IF p_read_elsewhere THEN
        PERFORM pg_relation_size(relid, 'init') FROM unnest(relids) AS relid;
    END IF;
    RETURN (
        SELECT min(format('%I.%I', n.nspname, c.relname))
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        -- Some system catalogs have their files listed elsewhere.
        WHERE c.oid = ANY (relids) AND c.relkind IN ('r', 'm') AND c.relfilenode <> 0
                AND pg_relation_filenode(c.oid) IS DISTINCT FROM c.relfilenode
            OR c.oid IN (SELECT d.source_relid FROM pgt_dependencies AS d WHERE d.pgt_id = p_pgt_id)
                AND (to_regclass(format('%I.%I', n.nspname, c.relname)) IS DISTINCT FROM c.oid::regclass
                    OR c.relkind = 'p' AND ARRAY(SELECT p.relid::oid FROM pg_partition_tree(c.oid) AS p ORDER BY 1)
                        <> capture_relations(c.oid)));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.rewritten_source(bigint, boolean) IS
    'A source of a stream table that was truncated, rewritten or renamed, or of which a partition came or went, or its '
    'change buffer that was rewritten, since the snapshot of the transaction, which has read it, or other sessions have '
    'in the same snapshot; NULL if there is none.';
