"""Queries over operations that Spark computes, and the tables and changes that they are tried with."""

from tests.conftest import Database

TABLES = """
CREATE TABLE a (i int, t text, d date, m timestamptz, n numeric(8,2), b boolean, y bytea, x bigint,
    u numeric);
CREATE TABLE c (i int, t text, d date, m timestamptz, n numeric(8,2), b boolean, y bytea, x bigint,
    u numeric);
"""
VALUES = (
    "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "(1, '', 'infinity', 'infinity', 'NaN', true, '\\x', 1, '-Infinity')",
    "(1, '', 'infinity', 'infinity', 'NaN', true, '\\x', 1, 'Infinity')",
    "(1, 'b', 'infinity', 'infinity', 0.1, true, '\\x', 2, 'NaN')",
    "(2, 'a', '-infinity', '-infinity', 1.5, false, '\\x00', NULL, -3.0000000000000)",
    "(3, 'A', '0044-03-15 BC', '0044-03-15 BC', -0.01, false, '\\xff', -7, 0.000000000001)",
    "(2, 'é', '2024-02-29', '2024-03-31 1:30Z', 0, true, '\\x0000', 9, 12345678.90)",
    "(4, 'a', '2024-02-29', NULL, 7.25, true, '\\x01', 5, 0.5)",
    "(4, 'a', '2024-02-29', NULL, 0.75, NULL, '\\x01', 5, 1.25)",
    "(4, 'a', '2024-02-29', NULL, NULL, NULL, '\\x01', 6, NULL)",
    "(2, NULL, '2024-02-29', '2024-03-31 1:30Z', 2, true, '\\x0000', 9223372036854775807, 10000)",
    "(1, NULL, NULL, NULL, 2, true, NULL, -9223372036854775808, 10000)",
)
COLUMNS = "itdmnby"
EVERY = ", ".join(COLUMNS)
# Conditions on results of groups, and comparisons of rows with them, which Spark evaluates.
GROUPS = (
    "SELECT c.x, g.* FROM (SELECT i, count(*) AS k, sum(n) AS s, avg(n) AS m, min(n) AS l, sum(i) AS si, max(x) AS h,"
    " avg(i) AS mi FROM a GROUP BY i) AS g JOIN c ON c.i = g.i WHERE {condition}"
)
CONDITIONS = {
    "counted": "g.k > 1",
    "summed": "g.s >= 2.00 AND g.s < 9.5",
    "none": "g.s IS NULL OR g.m IS NULL",
    "given": "g.l IS NOT NULL AND NOT g.h > 5",
    "negated": "NOT (g.m <= 1.25 OR g.si = 6)",
    "nan": "g.s > 9999999",
    "expression": "0.5 * g.s + 1 > g.l * 0.1 OR g.k * 2 < g.si",
    "mean": "0.2 * g.m < 0.4 AND g.mi <> 3",
    "listed": "g.k IN (1, 3, 4)",
    "key": "(g.i > 1 OR g.k = 2) AND g.s <> 2",
}
MEAN = "(SELECT 0.2 * avg(c.n) FROM c WHERE c.i = a.i)"
COMPARISONS = {
    **{f"mean_{i}": f"a.n {sign} {MEAN}" for i, sign in enumerate(("<", "<=", ">", ">="))},
    "half": "a.i > (SELECT 0.5 * sum(c.n) FROM c WHERE c.i = a.i)",
    "whole": "a.n <= (SELECT sum(c.n) FROM c WHERE c.t = a.t)",
    "less": "a.n > (SELECT -0.5 * sum(c.n) FROM c WHERE c.i = a.i)",
    "most": "a.i * 2 >= (SELECT 1.5 * min(c.n) + 1 FROM c WHERE c.i = a.i)",
}
# Each query with the operations that Spark computes of it.
QUERIES = {
    "rows": (f"SELECT d.*, c.x FROM (SELECT DISTINCT {EVERY} FROM a) AS d JOIN c ON c.i = d.i", {"distinct"}),
    **{
        f"distinct_{name}": (
            f"SELECT d.{name}, c.x FROM (SELECT DISTINCT {name} FROM a) AS d JOIN c ON c.{name} = d.{name}",
            {"distinct"},
        )
        for name in COLUMNS
    },
    "joined": (
        "SELECT c.x, d.* FROM (SELECT DISTINCT a.t, c.d FROM a JOIN c ON a.i = c.i) AS d JOIN c ON c.t = d.t",
        {"distinct"},
    ),
    "summed": (
        "SELECT c.x, d.i FROM (SELECT DISTINCT i FROM (SELECT i FROM a UNION ALL SELECT i FROM c) AS u) AS d"
        " JOIN c ON c.i = d.i",
        {"distinct"},
    ),
    "united": (
        f"SELECT u.*, c.x FROM (SELECT {EVERY} FROM a UNION SELECT {EVERY} FROM c) AS u JOIN c ON c.i = u.i",
        {"union"},
    ),
    "shared": (f"SELECT {EVERY} FROM a INTERSECT SELECT {EVERY} FROM c", {"intersect"}),
    "left": (f"SELECT {EVERY} FROM a EXCEPT SELECT {EVERY} FROM c", {"except"}),
    "shared_copies": (f"SELECT {EVERY} FROM a INTERSECT ALL SELECT {EVERY} FROM c", {"intersect all"}),
    "left_copies": (f"SELECT {EVERY} FROM a EXCEPT ALL SELECT {EVERY} FROM c", {"except all"}),
    "present": ("SELECT i, x FROM a WHERE EXISTS (SELECT FROM c WHERE c.t = a.t AND c.x > 0)", {"exists"}),
    "absent": ("SELECT i, x FROM a WHERE NOT EXISTS (SELECT FROM c WHERE c.d = a.d)", {"exists"}),
    "outer": ("SELECT a.i, c.x FROM a LEFT JOIN c ON a.n = c.n", {"exists"}),
    "full": ("SELECT a.i, c.x FROM a FULL JOIN c ON a.m = c.m", {"exists"}),
    "grouped": (
        "SELECT c.x, g.* FROM (SELECT i, count(*) AS n, count(x) AS nx, sum(i) AS s, min(x) AS l, max(x) AS h FROM a"
        " GROUP BY i) AS g JOIN c ON c.i = g.i",
        {"aggregate"},
    ),
    "totals": (
        "SELECT c.x, g.* FROM (SELECT i, sum(n) AS s, avg(n) AS m, avg(x) AS mx, avg(i) AS mi, sum(x) AS sx,"
        " min(n) AS l, max(n) AS h FROM a GROUP BY i) AS g JOIN c ON c.i = g.i",
        {"aggregate"},
    ),
    "of_any_scale": (
        "SELECT c.x, g.* FROM (SELECT t, sum(u) AS s, avg(u) AS m FROM a GROUP BY t) AS g"
        " JOIN c ON c.t = g.t",
        {"aggregate"},
    ),
    "of_expressions": (
        "SELECT c.x, g.* FROM (SELECT i, sum(n * (1 - n)) AS s, avg(2 * u - n) AS m, sum(i * 0.1) AS si,"
        " avg(CASE WHEN b THEN n ELSE -u END) AS mc FROM a GROUP BY i) AS g JOIN c ON c.i = g.i",
        {"aggregate"},
    ),
    "of_computed_columns": (
        "SELECT c.x, g.* FROM (SELECT t, sum(2 * v) AS s, avg(n - v) AS m FROM (SELECT t, n, u, n - u AS v FROM a) AS r"
        " GROUP BY t) AS g JOIN c ON c.t = g.t",
        {"aggregate"},
    ),
    "by_total": (
        "SELECT c.x, g.i FROM (SELECT i, sum(n) AS s FROM a GROUP BY i) AS g JOIN c ON c.n = g.s",
        {"aggregate"},
    ),
    "totals_of_totals": (
        "SELECT c.t, sum(g.s) AS s, avg(g.s) AS m FROM (SELECT i, sum(u) AS s FROM a GROUP BY i) AS g"
        " JOIN c ON c.i = g.i GROUP BY c.t",
        {"aggregate"},
    ),
    "by_date": ("SELECT count(*) AS k FROM (SELECT d, count(*) AS n FROM a GROUP BY d) AS g JOIN c ON g.n = c.x",
        {"aggregate"}),
    **{f"kept_{name}": (GROUPS.format(condition=condition), {"aggregate"}) for name, condition in CONDITIONS.items()},
    **{
        f"compared_{name}": (f"SELECT a.i, a.x, a.n FROM a WHERE {condition}", {"aggregate"})
        for name, condition in COMPARISONS.items()
    },
    "nested": (
        "SELECT c.x, g.n FROM (SELECT i, count(*) AS n FROM (SELECT DISTINCT i, t FROM a) AS d GROUP BY i) AS g"
        " JOIN c ON c.i = g.i",
        {"aggregate", "distinct"},
    ),
}  # fmt: skip
CHANGES = (
    f"INSERT INTO a VALUES {', '.join(VALUES[:4])}; INSERT INTO c VALUES {', '.join(VALUES[2:])}",
    "DELETE FROM a WHERE ctid = (SELECT min(ctid) FROM a WHERE t = ''); DELETE FROM a WHERE i IS NULL;"
    " UPDATE c SET t = 'a', d = 'infinity', n = 'NaN', m = NULL WHERE i = 2",
    "DELETE FROM a WHERE t = ''; UPDATE a SET i = NULL WHERE i = 2;"
    " INSERT INTO c SELECT * FROM a; INSERT INTO a SELECT * FROM c",
)


def fill(db: Database) -> None:
    """Make the tables, and put all edge values into both."""
    with db.connect() as connection:
        connection.execute(TABLES)
        for table in "ac":
            connection.execute(f"INSERT INTO {table} VALUES {', '.join(VALUES)}".encode())
