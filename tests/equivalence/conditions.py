"""Random conditions on the results of inner groups, all of which Spark evaluates exactly."""

from random import Random

SIGNS = ("<", "<=", ">", ">=", "=", "<>")
# Averages have more digits behind the point than Spark's decimals can compare with large sums.
NUMBERS = {
    "averages": ("g.m", "g.mi", "0.2 * g.m", "g.mi + 0.5", "1.5 * g.mi", "-g.m"),
    "sums": ("g.s", "g.l", "g.h", "0.5 * g.s", "g.s - g.l", "2 * g.h + 1", "-0.5 * g.l", "g.l - 0.01"),
    "whole": ("g.k", "g.si", "g.k * 2", "g.si - g.k", "g.x"),
}
LITERALS = {
    "averages": ("0", "0.2", "1.5", "-0.01", "2.0000"),
    "sums": ("0", "0.50", "1.5", "-0.01", "7.25", "10", "9999999"),
    "whole": ("0", "1", "2", "-7", "6", "9000000000"),
}
GROUPED = (
    "SELECT c.x AS other, g.* FROM (SELECT {key}, count(*) AS k, sum(n) AS s, avg(n) AS m, min(n) AS l, max(n) AS h,"
    " sum(i) AS si, avg(i) AS mi, max(x) AS x FROM a GROUP BY {key}) AS g JOIN c ON c.{key} = g.{key} WHERE {condition}"
)
COMPARED = (
    "SELECT a.i, a.t, a.x, a.n FROM a WHERE {left} {sign} (SELECT {right} FROM c WHERE c.{key} = a.{key}{further})"
)
RESULTS = (
    "sum(c.n)", "0.2 * avg(c.n)", "0.5 * sum(c.n)", "min(c.n) - 1.5", "avg(c.i) * 1.5", "0.0001 * max(c.n)",
    "avg(c.i) * 0.7",
)  # fmt: skip
KEYS = {"i": "g.i > 1", "t": "g.t >= 'a'", "d": "g.d < date '2024-01-01'", "b": "g.b"}


def query(chance: Random) -> str:
    """Write a query that keeps some groups, or compares rows with the results of groups."""
    key = chance.choice(tuple(KEYS))
    if chance.random() < 0.5:
        return GROUPED.format(key=key, condition=condition(chance, key, 2))
    left, further = chance.choice(("a.n", "a.i", "a.i - 1", "a.n * 2")), chance.choice(("", " AND c.x > 0"))
    return COMPARED.format(
        left=left, sign=chance.choice(SIGNS[:4]), right=chance.choice(RESULTS), key=key, further=further
    )


def condition(chance: Random, key: str, depth: int) -> str:
    """Write a condition on the group `g`, which is grouped by a key and is not about that alone."""
    if depth and chance.random() < 0.6:
        below = condition(chance, key, depth - 1)
        other = KEYS[key] if chance.random() < 0.3 else condition(chance, key, depth - 1)
        return chance.choice(
            (f"({below} AND {other})", f"({other} OR {below})", f"NOT ({below} OR {other})", f"NOT {below}")
        )
    kind = chance.choice(tuple(NUMBERS))
    left, right = chance.choice(NUMBERS[kind]), chance.choice(NUMBERS[kind] + LITERALS[kind])
    listed = ", ".join(chance.sample(LITERALS[kind], 2))
    return chance.choice(
        (
            *(f"{left} {chance.choice(SIGNS)} {right}" for _ in range(3)),
            f"{left} IS {chance.choice(('', 'NOT '))}NULL",
            f"{left} IN ({listed})",
            f"{left} BETWEEN {listed.replace(',', ' AND')}",
        )
    )
