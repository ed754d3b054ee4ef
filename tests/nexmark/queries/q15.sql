-- Bidding statistics
SELECT
    to_char(date_time, 'YYYY-MM-DD HH24') AS hour,
    count(*) AS total_bids,
    count(*) FILTER (WHERE price < 300) AS rank1_bids,
    count(*) FILTER (WHERE price >= 300 AND price < 700) AS rank2_bids,
    count(*) FILTER (WHERE price >= 700) AS rank3_bids,
    count(DISTINCT bidder) AS total_bidders,
    count(DISTINCT bidder) FILTER (WHERE price < 300) AS rank1_bidders,
    count(DISTINCT bidder) FILTER (WHERE price >= 300 AND price < 700) AS rank2_bidders,
    count(DISTINCT bidder) FILTER (WHERE price >= 700) AS rank3_bidders,
    count(DISTINCT auction) AS total_auctions,
    count(DISTINCT auction) FILTER (WHERE price < 300) AS rank1_auctions
FROM bid
GROUP BY to_char(date_time, 'YYYY-MM-DD HH24')
