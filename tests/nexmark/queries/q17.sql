-- Auction statistics
SELECT
    auction,
    date_time::date AS day,
    count(*) AS total_bids,
    count(*) FILTER (WHERE price < 300) AS rank1_bids,
    min(price) AS min_price,
    max(price) AS max_price,
    avg(price) AS avg_price,
    sum(price) AS sum_price
FROM bid
GROUP BY auction, date_time::date
