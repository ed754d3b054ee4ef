-- Average selling price of each seller's last ten auctions
SELECT
    w.seller,
    w.id,
    avg(w.price) OVER (
        PARTITION BY w.seller ORDER BY w.expires, w.id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW
    ) AS average
FROM (
    SELECT a.id, a.seller, a.expires, max(b.price) AS price
    FROM auction a
    JOIN bid b ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
    GROUP BY a.id, a.seller, a.expires
) AS w
