"""Groups over a join of two tables, at the edges of what can be summed, and batches of changes to them."""

TABLES = """
    CREATE TABLE facts (id int PRIMARY KEY, d int, i int, b bigint, s smallint, price numeric(10,2),
        any_numeric numeric, note text, wide numeric(27,12), part numeric(3,3));
    CREATE TABLE dims (d int PRIMARY KEY, name text, rate numeric);
    INSERT INTO dims VALUES (1, 'one', 1.0), (2, 'two', 1.00), (3, NULL, 'NaN');
    INSERT INTO facts SELECT n, n % 4, n - 20, n * 900000000000000, n % 5 - 2, n / 7.0, n / 8.0 - 3, nullif('', 'x')
    FROM generate_series(1, 40) AS n"""
FROM = "FROM facts JOIN dims USING (d)"
QUERIES = {
    "sums": f"SELECT name, sum(i) AS i, sum(b) AS b, avg(s) AS s, count(*) AS n {FROM} GROUP BY name",
    "numerics": f"SELECT name, sum(price) AS p, avg(any_numeric) AS a, sum(rate) AS r {FROM} GROUP BY name",
    "by_rate": f"SELECT sum(any_numeric) AS a, count(note) AS c {FROM} GROUP BY rate",
    "everything": f"SELECT sum(price) AS p, min(i) AS least, max(b) AS most, sum(any_numeric) AS a {FROM}",
    "by_numbers": f"SELECT i, b, s, sum(i) AS total, count(*) AS n {FROM} GROUP BY i, b, s",
    "by_price": f"SELECT price, sum(price) AS p, avg(any_numeric) AS a, max(s) AS m {FROM} GROUP BY price",
    "digits": f"SELECT name, sum(wide) AS w, avg(part) AS p, count(wide) AS n {FROM} GROUP BY name",
    "computed": f"SELECT name, sum(price * (1 - part)) AS v, avg(any_numeric * s) AS a {FROM} GROUP BY name",
    "extremes": f"SELECT name, min(s) AS least, max(i) AS most, sum(any_numeric) AS a {FROM} GROUP BY name",
}
TEXTS = f"SELECT name, max(note) AS note, sum(i) AS i {FROM} GROUP BY name"
CHANGES = (
    "INSERT INTO facts VALUES (50, 1, 2147483647, 9223372036854775807, 3, 99999999.99, 1.000000000001, 'a'),"
    " (51, 1, -2147483648, 9223372036854775807, NULL, NULL, -1e15, NULL),"
    " (52, 2, NULL, NULL, 0, 'NaN', 'Infinity', 'b'), (53, 3, 1, 1, 1, 1, '-Infinity', 'c'),"
    " (54, 1, 1, 1, 1, 0.10, 5.00, 'd'), (55, 2, 1, 1, 1, 0, 1.0000000000000, NULL),"
    " (56, 1, 1, 1, 1, 0, -9999999999999999.999999999999, NULL), (57, 3, 1, 1, 1, 0, 0.000000000001000, NULL)",
    "UPDATE facts SET wide = 999999999999999.999999999999, part = 0.999 WHERE id % 5 = 0;"
    " UPDATE facts SET wide = -999999999999999.999999999999, part = -0.999 WHERE id % 5 = 1",
    "UPDATE facts SET wide = 'NaN', part = 'NaN' WHERE id % 4 = 2; UPDATE facts SET wide = 1 WHERE id = 3",
    "UPDATE facts SET wide = 0.5 WHERE id % 4 = 2; UPDATE facts SET wide = NULL, part = NULL WHERE id % 5 = 1",
    "UPDATE facts SET any_numeric = any_numeric + 0.000 WHERE id < 10; UPDATE dims SET rate = 1.000 WHERE d = 1",
    "DELETE FROM facts WHERE id IN (50, 52, 53); UPDATE facts SET d = 3 WHERE id = 54",
    "DELETE FROM dims WHERE d = 2; INSERT INTO dims VALUES (4, 'two', 2)",
)
TOO_WIDE = ("1e16", "0.0000000000001", "-123456789012345678901234567890.5")
INSERT_WIDE = "INSERT INTO facts VALUES (60, 1, 1, 1, 1, 1, {})"
