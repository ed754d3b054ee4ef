-- A table whose changes are published must say by which columns its rows are known elsewhere. PostgreSQL refuses every
-- UPDATE and DELETE otherwise, and what is made for stream tables has no primary key.

CREATE OR REPLACE FUNCTION pgtrickle_private.lacks_identity(relation regclass) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT EXISTS (
        SELECT FROM pg_class AS c JOIN pg_publication AS p ON p.pubupdate OR p.pubdelete
        WHERE c.oid = relation AND c.relkind = 'r' AND c.relpersistence = 'p' AND c.relreplident = 'd'
            AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary)
            AND (p.puballtables
                OR EXISTS (SELECT FROM pg_publication_rel AS r
                           WHERE r.prpubid = p.oid AND (r.prrelid = c.oid
                               OR r.prrelid IN (SELECT a.relid FROM pg_partition_ancestors(c.oid) AS a(relid))))
                OR EXISTS (SELECT FROM pg_publication_namespace AS n
                           WHERE n.pnpubid = p.oid AND n.pnnspid = c.relnamespace)))
$$;
COMMENT ON FUNCTION pgtrickle_private.lacks_identity(regclass) IS
    'Whether updates or deletions of the relation are published, though it does not say by what its rows are known.';

CREATE OR REPLACE FUNCTION pgtrickle_private.identify_rows(relation regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', relation);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.identify_rows(regclass) IS
    'Has the rows of a relation that is published be known by all their columns.';

CREATE OR REPLACE FUNCTION pgtrickle_private.identify_if_published(relation regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF lacks_identity(relation) THEN
        PERFORM identify_rows(relation);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.identify_if_published(regclass) IS
    'Has the rows of a relation be known by all their columns if it is published and says nothing of its own.';

CREATE OR REPLACE FUNCTION pgtrickle_private.unidentified() RETURNS TABLE (relation bigint, pgt_ids bigint[])
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_publication AS p WHERE p.pubupdate OR p.pubdelete) THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT to_regclass(k.buffer)::oid::bigint,
           ARRAY(SELECT d.pgt_id::bigint FROM pgt_dependencies AS d WHERE d.source_relid = k.source_relid)
    FROM pgt_change_tracking AS k WHERE lacks_identity(to_regclass(k.buffer))
    UNION ALL
    SELECT made.relid::bigint, ARRAY[t.pgt_id::bigint]
    FROM pgt_stream_tables AS t CROSS JOIN LATERAL (
        SELECT t.pgt_relid::oid UNION ALL SELECT kept_beside(t.pgt_id)::oid) AS made(relid)
    WHERE lacks_identity(made.relid);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.unidentified() IS
    'What was made for stream tables and is published, but does not say by what its rows are known; beside it the '
    'stream tables whose refreshes would fail for that.';
