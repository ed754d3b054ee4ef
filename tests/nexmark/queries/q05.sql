-- Hot items: the auctions with the most bids in windows of ten minutes that begin every two
WITH windows AS (
    SELECT b.auction, date_bin('2 minutes', b.date_time, '2026-01-01') - s.shift AS starttime
    FROM bid b
    CROSS JOIN (
        SELECT interval '0 minutes' AS shift
        UNION ALL SELECT interval '2 minutes'
        UNION ALL SELECT interval '4 minutes'
        UNION ALL SELECT interval '6 minutes'
        UNION ALL SELECT interval '8 minutes'
    ) AS s
),
counts AS (
    SELECT auction, starttime, count(*) AS num FROM windows GROUP BY auction, starttime
),
most AS (
    SELECT starttime, max(num) AS maxn FROM counts GROUP BY starttime
)
SELECT c.auction, c.num, c.starttime
FROM counts c
JOIN most m ON c.starttime = m.starttime AND c.num = m.maxn
