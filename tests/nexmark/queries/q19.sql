-- The ten highest bids of each auction; what follows the price in the order decides ties
SELECT auction, bidder, price, date_time, rank_number
FROM (
    SELECT
        auction,
        bidder,
        price,
        date_time,
        row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time, bidder) AS rank_number
    FROM bid
) AS ranked
WHERE rank_number <= 10
