-- Channel id
SELECT
    auction,
    bidder,
    price,
    channel,
    CASE lower(channel)
        WHEN 'apple' THEN '0'
        WHEN 'google' THEN '1'
        WHEN 'facebook' THEN '2'
        WHEN 'baidu' THEN '3'
        ELSE substring(url FROM 'channel_id=([^&]*)')
    END AS channel_id
FROM bid
WHERE url ~ 'channel_id=' OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')
