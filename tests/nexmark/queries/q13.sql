-- Bounded side input join
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid b
JOIN side_input s ON b.auction % 5 = s.key
