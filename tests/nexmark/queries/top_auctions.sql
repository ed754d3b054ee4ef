-- The ten auctions with the most bids, in an order without ties
SELECT auction, count(*) AS bids, max(price) AS highest
FROM bid
GROUP BY auction
ORDER BY bids DESC, auction
LIMIT 10
