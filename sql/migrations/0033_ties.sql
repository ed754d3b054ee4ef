-- What an earlier version computed otherwise is computed anew once. Run once and never edited afterwards.

-- Rows that tie are sorted by the bytes of their text now, not by the database's collation, where a window function
-- numbers rows or has a frame of rows, and for DISTINCT ON, LIMIT and ORDER BY within a call. What was chosen of them
-- earlier may not be what the next refresh would take away. A collation that sorts by bytes changes nothing, unless
-- several windows sort. And FETCH below the top of a query, and groups by a comparison with a subquery, were wrong.
WITH RECURSIVE views(pgt_id, relid) AS (
    SELECT t.pgt_id, t.view_relid::oid FROM pgtrickle.pgt_stream_tables AS t
    UNION
    SELECT v.pgt_id, d.refobjid
    FROM views AS v
        JOIN pg_rewrite AS r ON r.ev_class = v.relid
        JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
            AND d.refclassid = 'pg_class'::regclass
        JOIN pg_class AS c ON c.oid = d.refobjid AND c.relkind = 'v'
), texts(pgt_id, query, bytewise) AS (
    SELECT v.pgt_id, pg_get_viewdef(v.relid), d.datcollate IN ('C', 'POSIX')
    FROM views AS v JOIN pg_database AS d ON d.datname = current_database()
)
UPDATE pgtrickle.pgt_stream_tables AS t
SET reinitialize_reason = COALESCE(t.reinitialize_reason, 'an earlier version computed some of it otherwise')
WHERE t.status <> 'INITIALIZING' AND t.refresh_mode <> 'FULL' AND EXISTS (
    SELECT FROM texts AS q WHERE q.pgt_id = t.pgt_id AND (
        q.query ~ 'ROWS WITH TIES.*\)|GROUP BY.*\(\s*SELECT'
        OR q.query ~ '\m(row_number|ntile|lag|lead|first_value|last_value|nth_value)\(|DISTINCT ON|'
            '\mROWS (BETWEEN|UNBOUNDED|CURRENT|\d)|\m(LIMIT|OFFSET)\M.*\)|(?<!OVER )\([^()]*\mORDER BY'
            AND (NOT q.bytewise OR q.query ~ 'OVER.*OVER')));
