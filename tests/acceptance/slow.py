"""A query that waits, where rows are read, for as long as another session holds an advisory lock."""

LOCK = 4711
SLOWLY = f"""
CREATE FUNCTION slowly(amount int) RETURNS int IMMUTABLE LANGUAGE plpgsql SET lock_timeout = 0 AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared({LOCK});
    RETURN amount;
END
$$
"""
TOTALS = "SELECT customer, count(*) AS n, sum(slowly(amount)) AS amount FROM orders GROUP BY customer"
