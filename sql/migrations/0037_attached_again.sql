-- The stamp of capture tells of partitions that are attached again. Run once and never edited afterwards.

-- As capture_stamp() makes it, where all was well before, so that nothing has to be computed anew after an upgrade.
UPDATE pgtrickle.pgt_change_tracking AS k
SET trigger_stamp = pg_catalog.md5(concat_ws(';', s.triggers, s.parts))
FROM (
    SELECT t.source_relid, (
        SELECT string_agg(concat(g.oid, ' ', g.xmin), ',' ORDER BY g.oid)
        FROM pg_catalog.pg_trigger AS g
        WHERE g.tgrelid = ANY (t.relations)
            AND g.tgname ~ format('^pgtrickle_(insert|update|delete|truncate|row)_%s$', t.source_relid::oid)), (
        SELECT string_agg(concat(i.inhparent, ' ', i.inhrelid, ' ', i.xmin), ',' ORDER BY i.inhparent, i.inhrelid)
        FROM pg_catalog.pg_inherits AS i
        WHERE i.inhparent = ANY (t.relations) AND i.inhrelid = ANY (t.relations))
    FROM pgtrickle.pgt_change_tracking AS t) AS s(source_relid, triggers, parts)
WHERE s.source_relid = k.source_relid AND s.parts IS NOT NULL AND k.trigger_stamp = pg_catalog.md5(s.triggers);
