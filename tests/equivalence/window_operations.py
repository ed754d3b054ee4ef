"""Queries over windows, and over the first rows of keys, with the operation that Spark computes of each."""

OVER = "PARTITION BY i ORDER BY"
LATERAL = "SELECT c.x, f.n, f.m FROM c CROSS JOIN LATERAL (SELECT a.n, a.m FROM a WHERE a.i = c.i ORDER BY {by}) AS f"
# Each query with the operation that Spark computes of it.
QUERIES = {
    "ranks": (
        f"SELECT i, x, rank() OVER ({OVER} x) AS r, dense_rank() OVER ({OVER} d DESC, b) AS s,"
        f" count(*) OVER (PARTITION BY i) AS k, count(n) OVER ({OVER} m NULLS FIRST) AS kn FROM a",
        "window",
    ),
    "numbers": (
        f"SELECT i, t, n, row_number() OVER ({OVER} n) AS r, row_number() OVER ({OVER} u DESC NULLS LAST) AS s FROM a",
        "window",
    ),
    "kept": ("SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY t ORDER BY x) AS r FROM a) AS w WHERE r <= 2",
        "window"),
    "joined": (
        "SELECT w.*, c.x AS cx FROM (SELECT i, n, rank() OVER (PARTITION BY t ORDER BY n DESC) AS r FROM a) AS w"
        " JOIN c ON c.i = w.r WHERE w.i > 0",
        "window",
    ),
    "totals": (
        f"SELECT i, x, n, sum(i) OVER ({OVER} x) AS si, sum(n) OVER ({OVER} x) AS sn, avg(u) OVER ({OVER} d) AS mu,"
        f" sum(x) OVER (PARTITION BY i) AS sx, min(x) OVER ({OVER} n) AS l, avg(i) OVER ({OVER} b) AS mi FROM a",
        "window",
    ),
    "frames": (
        f"SELECT i, u, sum(n) OVER ({OVER} x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s,"
        f" count(*) OVER ({OVER} m ROWS 2 PRECEDING) AS k, max(x) OVER ({OVER} d ROWS BETWEEN 1 FOLLOWING AND"
        f" UNBOUNDED FOLLOWING) AS h, sum(u) OVER ({OVER} x RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS f"
        " FROM a",
        "window",
    ),
    "empty_frames": (
        f"SELECT i, x, max(n) OVER ({OVER} x ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS h, min(n) OVER ({OVER} x ROWS"
        f" BETWEEN 1 FOLLOWING AND 2 FOLLOWING) AS l, sum(n) OVER ({OVER} d ROWS BETWEEN 1 FOLLOWING AND 1 FOLLOWING)"
        f" AS s, avg(n) OVER ({OVER} x ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING) AS m, count(n) OVER ({OVER} x ROWS"
        " BETWEEN 3 PRECEDING AND 2 PRECEDING) AS k, sum(n) OVER (PARTITION BY i RANGE UNBOUNDED PRECEDING) AS p"
        " FROM a",
        "window",
    ),
    "shifted": (
        f"SELECT i, t, lag(t) OVER ({OVER} x) AS a, lead(n, 2) OVER ({OVER} x DESC) AS b, lag(m) OVER ({OVER} x) AS c,"
        f" first_value(y) OVER ({OVER} d) AS f FROM a",
        "window",
    ),
    "by_moments": ("SELECT x, row_number() OVER (PARTITION BY m, d ORDER BY b DESC, y, m) AS r FROM a", "window"),
    "over_two_tables": (
        "SELECT a.t, c.x, row_number() OVER (PARTITION BY a.t ORDER BY c.x) AS r FROM a JOIN c ON a.i = c.i",
        "window",
    ),
    "over_partners": (
        "SELECT a.i, c.n, row_number() OVER (PARTITION BY a.i ORDER BY c.d) AS r FROM a LEFT JOIN c ON a.x = c.x",
        "window",
    ),
    "grouped": (
        "SELECT t, r, count(*) AS k FROM (SELECT t, rank() OVER (PARTITION BY t ORDER BY x) AS r FROM a) AS w"
        " GROUP BY t, r",
        "window",
    ),
    "first": ("SELECT DISTINCT ON (i) i, t, n, u FROM a ORDER BY i, x DESC", "distinct on"),
    "first_kept": (
        "SELECT c.x, f.* FROM (SELECT DISTINCT ON (t) t, i, n FROM a ORDER BY t, n) AS f JOIN c ON c.t = f.t"
        " WHERE f.i > 1",
        "distinct on",
    ),
    "limited": (LATERAL.format(by="a.x LIMIT 2"), "limit"),
    "skipped": (LATERAL.format(by="a.n DESC NULLS LAST OFFSET 1"), "limit"),
    "with_ties": (LATERAL.format(by="a.b FETCH FIRST ROW WITH TIES"), "limit"),
}  # fmt: skip
# No order that the query leaves open shows in these.
SETTLED = ("ranks", "totals", "joined", "grouped", "with_ties")
LEFT_TO_POSTGRES = {
    "alone": "SELECT i, rank() OVER (ORDER BY x) AS r FROM a",
    "by_text": "SELECT i, rank() OVER (PARTITION BY i ORDER BY t) AS r FROM a",
    "partitions": "SELECT i, rank() OVER (PARTITION BY i ORDER BY x) AS r, count(*) OVER (PARTITION BY t, i) AS k"
    " FROM a",
    "fractions": "SELECT i, percent_rank() OVER (PARTITION BY i ORDER BY x) AS r FROM a",
    "kept_by_both": "SELECT * FROM (SELECT *, rank() OVER (PARTITION BY i ORDER BY n) AS r FROM a) AS w WHERE r < x",
    "empty": "SELECT i, sum(x) OVER (PARTITION BY i ORDER BY n ROWS BETWEEN 1 PRECEDING AND 2 PRECEDING) AS s FROM a",
    "filtered": "SELECT i, count(*) FILTER (WHERE b) OVER (PARTITION BY i) AS k FROM a",
    "excluded": "SELECT i, sum(x) OVER (PARTITION BY i ORDER BY n RANGE UNBOUNDED PRECEDING EXCLUDE TIES) AS s FROM a",
    "excluded_without_order": "SELECT i, sum(x) OVER (PARTITION BY i RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED"
    " FOLLOWING EXCLUDE CURRENT ROW) AS s FROM a",
}
