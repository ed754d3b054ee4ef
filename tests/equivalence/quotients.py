"""Sums and counts whose quotients are compared with PostgreSQL's own."""

from decimal import Decimal
from random import Random

from pytrickle.plan.spark.operations.quotient import divided

EDGES = (
    ("0", 1, 0), ("0.00", 3, 2), ("1", 3, 0), ("-1", 3, 0), ("2", 3, 0), ("9999", 9999, 0), ("10000", 9999, 0),
    ("0.0001", 7, 4), ("-0.00009999", 3, 8), ("0.000000000001", 9999, 12), ("123456789012345.67", 7, 2),
    ("9999999999999999", 1, 0), ("1.5", 2, 1), ("100000000", 10000, 0), ("-7.50", 4, 14), ("0.00000001", 1, 8),
    ("1", 33554432, 0), ("-1", 33554432, 0),
)  # fmt: skip
QUOTIENTS = divided("q", "total", "counted", "places")


def pairs(chance: Random, number: int) -> list[tuple[str, int, int]]:
    """Draw sums, counts and the scales of the sums, beside those at the edges."""
    found = list(EDGES)
    for _ in range(number):
        places = chance.randrange(13)
        digits = chance.randrange(1, 15)
        total = Decimal(chance.randrange(-(10**digits), 10**digits)).scaleb(-places)
        found.append((f"{total:f}", chance.randrange(1, 10 ** chance.randrange(1, 8)), places))
    return found


def quotients(rows: str) -> str:
    """Write the query for the quotients of rows with the columns i, total, counted and places."""
    for step in QUOTIENTS:
        rows = f"SELECT d.*, {', '.join(f'{sql} AS {name}' for name, sql in step.items())} FROM ({rows}) AS d"
    return f"SELECT i, q FROM ({rows}) AS d"


def expected(values: list[tuple[str, int, int]]) -> str:
    """Write the query for PostgreSQL's quotients of the same."""
    listed = ", ".join(f"({i}, round({total}, {places}), {n})" for i, (total, n, places) in enumerate(values))
    return f"SELECT i, CAST(total / n AS text) FROM (VALUES {listed}) AS v (i, total, n)"


def given(values: list[tuple[str, int, int]], integer: str) -> str:
    """Write the rows for both engines."""
    rows = (
        f"SELECT {i} AS i, CAST({total} AS DECIMAL(38,12)) AS total, CAST({n} AS {integer}) AS counted,"
        f" {places} AS places"
        for i, (total, n, places) in enumerate(values)
    )
    return " UNION ALL ".join(rows)
