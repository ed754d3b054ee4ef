-- Winning bids; the bidder added to the order decides ties
SELECT id, item_name, seller, category, expires, auction, bidder, price, bid_date_time
FROM (
    SELECT
        a.id, a.item_name, a.seller, a.category, a.expires,
        b.auction, b.bidder, b.price, b.date_time AS bid_date_time,
        row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time, b.bidder) AS rownum
    FROM auction a
    JOIN bid b ON a.id = b.auction
    WHERE b.date_time BETWEEN a.date_time AND a.expires
) AS ranked
WHERE rownum <= 1
