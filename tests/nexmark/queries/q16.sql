-- Channel statistics
SELECT
    channel,
    date_time::date AS day,
    max(to_char(date_time, 'HH24:MI')) AS minute,
    count(*) AS total_bids,
    count(*) FILTER (WHERE price >= 700) AS rank3_bids,
    count(DISTINCT bidder) AS total_bidders,
    count(DISTINCT bidder) FILTER (WHERE price >= 700) AS rank3_bidders,
    count(DISTINCT auction) AS total_auctions
FROM bid
GROUP BY channel, date_time::date
