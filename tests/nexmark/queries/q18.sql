-- Last bid of each bidder for each auction; the price added to the order decides ties
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (
    SELECT
        *,
        row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC, price DESC, channel, url, extra)
            AS rank_number
    FROM bid
) AS ranked
WHERE rank_number <= 1
