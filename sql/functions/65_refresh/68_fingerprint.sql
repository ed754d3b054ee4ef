-- Whether anything changed in the system catalogs that a tick would have to look into.

-- Rows of the catalogs carry the transaction that wrote them, so nothing needs to be compared to see that nothing
-- changed. Temporary relations, which come and go with every refresh, are not among ours. What is ours is looked up:
-- left to itself, PostgreSQL would read the columns of all relations that there are.
CREATE OR REPLACE FUNCTION pgtrickle_private.catalog_fingerprint() RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
BEGIN
    RETURN (WITH ours(relid) AS MATERIALIZED (
        SELECT DISTINCT r FROM pgt_change_tracking AS t
            CROSS JOIN LATERAL unnest(t.relations || to_regclass(t.buffer)::oid) AS r
        UNION SELECT d.source_relid::oid FROM pgt_dependencies AS d
        -- A part of it may be what keeps a source from being captured.
        UNION SELECT unnest(capture_relations(d.source_relid)) FROM pgt_dependencies AS d
            WHERE d.source_type = 'UNCAPTURED'
        UNION SELECT s.pgt_relid::oid FROM pgt_stream_tables AS s
        UNION SELECT unnest(capture_relations(e.source_relid)) FROM pgt_event_times AS e
        -- Tables whose rows are values elsewhere: in columns, in what functions return, or by a cast. Those of this
        -- catalog change only with its version.
        UNION SELECT COALESCE(NULLIF(y.typrelid, 0), e.typrelid)
            FROM (SELECT DISTINCT d.refobjid FROM pg_depend AS d
                  WHERE d.refclassid = 'pg_type'::regclass AND d.deptype = 'n') AS d
            JOIN pg_type AS y ON y.oid = d.refobjid
                AND y.typnamespace NOT IN ('pgtrickle'::regnamespace, 'pgtrickle_private'::regnamespace)
            LEFT JOIN pg_type AS e ON e.oid = y.typelem
    ), near(relid, stamp, kind) AS MATERIALIZED (
        SELECT c.oid, c.xmin, c.relkind FROM pg_class AS c
        WHERE c.oid IN (SELECT ours.relid FROM ours) OR (c.oid >= 16384 AND c.relkind IN ('v', 'c'))
            OR (c.relnamespace = 'pgtrickle_state'::regnamespace AND c.relpersistence = 'u')
    ), read_by_column(relid, kind) AS MATERIALIZED (
        -- Of its own views, one for each stream table, nobody is granted a column.
        SELECT near.relid, near.kind FROM near WHERE near.kind = 'c' OR (near.kind = 'v'
            AND near.relid NOT IN (SELECT s.view_relid FROM pgt_stream_tables AS s)))
    SELECT concat_ws(' ',
        (SELECT sum(hash_record_extended(ROW(near.relid, near.stamp), 0)) FROM near WHERE near.kind <> 'c'),
        (SELECT sum(hash_record_extended(ROW(a.attrelid, a.attnum, a.xmin), 0)) FROM ours
            JOIN pg_attribute AS a ON a.attrelid = ours.relid AND a.attnum > 0),
        (SELECT sum(hash_record_extended(ROW(t.oid, t.xmin), 0)) FROM ours
            JOIN pg_trigger AS t ON t.tgrelid = ours.relid),
        (SELECT sum(hash_record_extended(ROW(i.inhrelid, i.inhparent, i.xmin), 0)) FROM pg_inherits AS i),
        (SELECT sum(hash_record_extended(ROW(w.oid, w.xmin), 0)) FROM pg_rewrite AS w WHERE w.oid >= 16384),
        (SELECT sum(hash_record_extended(ROW(a.attrelid, a.attnum, a.xmin), 0))
         FROM read_by_column AS v CROSS JOIN LATERAL (
             SELECT c.attrelid, c.attnum, c.xmin, c.attacl
             FROM pg_attribute AS c WHERE c.attrelid = v.relid OFFSET 0) AS a
         WHERE v.kind = 'c' OR a.attacl IS NOT NULL),
        (SELECT sum(hash_record_extended(ROW(r.oid, r.rolsuper, r.rolbypassrls, r.rolinherit), 0))
            FROM pg_roles AS r),
        (SELECT sum(hash_record_extended(ROW(m.roleid, m.member, m.xmin), 0)) FROM pg_auth_members AS m),
        (SELECT sum(hash_record_extended(ROW(n.oid, n.nspname), 0)) FROM pg_namespace AS n
            WHERE n.oid >= 16384 AND NOT starts_with(n.nspname::text, 'pg_')),
        (SELECT sum(hash_record_extended(ROW(p.oid, p.xmin), 0)) FROM pg_proc AS p WHERE p.oid >= 16384),
        (SELECT sum(hash_record_extended(ROW(o.oid, o.xmin), 0)) FROM pg_operator AS o WHERE o.oid >= 16384),
        (SELECT sum(hash_record_extended(ROW(l.oid, l.xmin), 0)) FROM pg_enum AS l),
        (SELECT sum(hash_record_extended(ROW(c.oid, c.xmin), 0)) FROM pg_cast AS c WHERE c.oid >= 16384),
        (SELECT sum(hash_record_extended(ROW(c.oid, c.xmin), 0)) FROM pg_ts_config AS c WHERE c.oid >= 16384),
        (SELECT sum(hash_record_extended(ROW(m.mapcfg, m.maptokentype, m.mapseqno, m.xmin), 0))
         FROM pg_ts_config_map AS m WHERE m.mapcfg >= 16384),
        (SELECT sum(hash_record_extended(ROW(d.oid, d.xmin), 0)) FROM pg_ts_dict AS d WHERE d.oid >= 16384),
        (SELECT sum(hash_record_extended(ROW(s.srsubid, s.srrelid, s.xmin), 0)) FROM pg_subscription_rel AS s),
        (SELECT sum(hash_record_extended(ROW(p.oid, p.xmin), 0)) FROM pg_publication AS p),
        (SELECT sum(hash_record_extended(ROW(p.oid, p.xmin), 0)) FROM pg_publication_rel AS p),
        (SELECT sum(hash_record_extended(ROW(p.oid, p.xmin), 0)) FROM pg_publication_namespace AS p),
        (SELECT sum(hash_record_extended(ROW(g.source_relid, g.xmin), 0)) FROM pgt_capture_gaps AS g),
        (SELECT string_agg(concat(e.event_time_id, ' ', e.xmin), ' ' ORDER BY e.event_time_id)
            FROM pgt_event_times AS e),
        (SELECT sum(hash_record_extended(ROW(s.pgt_id, s.view_stamp), 0)) FROM pgt_stream_tables AS s)));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.catalog_fingerprint() IS
    'A text that changes when anything did by which changes may have been missed, or a defining query may mean '
    'something else or see other rows.';
