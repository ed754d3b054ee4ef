-- pytrickle: refresh_mode = DIFFERENTIAL_STRICT
SELECT order_id, count(*) AS lines, sum(amount) AS amount
FROM order_lines
GROUP BY order_id
