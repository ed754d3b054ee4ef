-- Monitor new users: who opened an auction in the ten minutes in which they registered
SELECT p.id, p.name, p.starttime
FROM (
    SELECT DISTINCT id, name, date_bin('10 minutes', date_time, '2026-01-01') AS starttime FROM person
) AS p
JOIN (
    SELECT DISTINCT seller, date_bin('10 minutes', date_time, '2026-01-01') AS starttime FROM auction
) AS a ON p.id = a.seller AND p.starttime = a.starttime
