-- Auctions without a bid that reached the reserve, with their sellers where they are known
SELECT a.id, a.item_name, p.name
FROM auction a
LEFT JOIN person p ON p.id = a.seller
WHERE NOT EXISTS (SELECT FROM bid b WHERE b.auction = a.id AND b.price >= a.reserve)
