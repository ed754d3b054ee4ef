-- Rows that tie are sorted by the bytes of their text now, not by the database's collation. Run once and never edited
-- afterwards.

-- What an earlier refresh chose of such rows may not be what the next one would take away, so a stream table whose
-- query sorts, or reads a view that does, is computed anew once. Where the collation sorts by bytes nothing changed.
WITH RECURSIVE views(pgt_id, relid) AS (
    SELECT t.pgt_id, t.view_relid::oid FROM pgtrickle.pgt_stream_tables AS t
    UNION
    SELECT v.pgt_id, d.refobjid
    FROM views AS v
        JOIN pg_rewrite AS r ON r.ev_class = v.relid
        JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
            AND d.refclassid = 'pg_class'::regclass
        JOIN pg_class AS c ON c.oid = d.refobjid AND c.relkind = 'v'
)
UPDATE pgtrickle.pgt_stream_tables AS t
SET reinitialize_reason = COALESCE(t.reinitialize_reason, 'rows that tie are sorted by their bytes now')
WHERE t.status <> 'INITIALIZING' AND t.refresh_mode <> 'FULL'
    AND EXISTS (SELECT FROM views AS v WHERE v.pgt_id = t.pgt_id
        AND pg_get_viewdef(v.relid) ~* '\m(over|limit|offset|fetch|distinct on|order by)\M')
    AND (SELECT d.datcollate NOT IN ('C', 'POSIX') FROM pg_database AS d WHERE d.datname = current_database());
