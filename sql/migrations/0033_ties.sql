-- Rows that tie are sorted by the bytes of their text now, not by the database's collation. Run once and never edited
-- afterwards.

-- What an earlier refresh chose of such rows may not be what the next one would take away, so a stream table whose
-- query, or a view that it reads, tells such rows apart below its top is computed anew once: by a window function that
-- numbers rows or has a frame of rows, DISTINCT ON, LIMIT, or ORDER BY within a call. Where the collation sorts by bytes
-- nothing changed.
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
        AND pg_get_viewdef(v.relid) ~ ('\m(row_number|ntile|lag|lead|first_value|last_value|nth_value)\(|DISTINCT ON'
            '|\mROWS (BETWEEN|UNBOUNDED|CURRENT|\d)|\m(LIMIT|OFFSET)\M.*\)|(?<!OVER )\([^()]*\mORDER BY'))
    AND (SELECT d.datcollate NOT IN ('C', 'POSIX') FROM pg_database AS d WHERE d.datname = current_database());
