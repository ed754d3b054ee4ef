-- Highest bid of each ten minutes
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra
FROM bid b
JOIN (
    SELECT max(price) AS maxprice, date_bin('10 minutes', date_time, '2026-01-01') AS starttime
    FROM bid
    GROUP BY date_bin('10 minutes', date_time, '2026-01-01')
) AS m ON b.price = m.maxprice AND date_bin('10 minutes', b.date_time, '2026-01-01') = m.starttime
