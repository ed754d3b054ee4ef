"""Sums of products: where all values of an argument have one scale, groups do not count the scales that there are."""

import random
from collections.abc import Iterator

import pytest

from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.repeats import in_parts

COLUMNS = {"price": "numeric(12,2)", "share": "numeric(5,4)", "whole": "numeric(6)", "n": "int", "free": "numeric"}
TABLE = f"CREATE TABLE sales (id int PRIMARY KEY, kind int, {', '.join(f'{k} {v}' for k, v in COLUMNS.items())})"
ROWS = """
INSERT INTO sales SELECT i, i % 4, CASE i % 9 WHEN 0 THEN 'NaN' WHEN 1 THEN NULL ELSE i / 7.0 END, i / 400.0, i % 50,
    nullif(i % 6, 5), CASE i % 11 WHEN 0 THEN 'Infinity' ELSE round(i / 3.0, i % 4) END
FROM generate_series(1, 300) AS i
"""
CHANGES = (
    "UPDATE sales SET price = price + 1 WHERE id % 5 = 0",
    "UPDATE sales SET price = 0, free = 0 WHERE kind = 2",
    "DELETE FROM sales WHERE price = 'NaN' OR kind = 3",
    "INSERT INTO sales VALUES (900, 3, NULL, 1, 7, NULL, 1.50), (901, 3, 2.5, NULL, 7, 3, NULL)",
)
EXPRESSIONS = 24


@pytest.fixture
def client(db: Database) -> Iterator[Client]:
    """A client on a database with numbers of declared scales and of others, NaN and NULL among them."""
    db.execute(TABLE)
    db.execute(ROWS)
    with local_client(db.dsn) as (client, _):
        yield client


@in_parts(4)
def test_sums_of_computed_numbers_look_as_postgresql_writes_them(db: Database, client: Client, nth: int) -> None:
    chosen, settled = random.Random(nth), dict[str, str]()
    for i in range(EXPRESSIONS):
        expression, function = _number(chosen, 3), chosen.choice(["sum", "avg"])
        query = f"SELECT kind, {function}({expression}) AS total FROM sales GROUP BY kind"
        client.create_stream_table(f"sums_{i}", query, refresh_mode="DIFFERENTIAL")
        client.tick()
        if not _counts_scales(db, f"sums_{i}"):
            settled[f"sums_{i}"] = expression
    assert 0 < len(settled) < EXPRESSIONS
    for change in CHANGES:
        for expression in settled.values():
            assert db.value(f"SELECT count(DISTINCT scale(CAST({expression} AS numeric))) FROM sales") <= 1
        db.execute(change)
        assert {result.action for result in client.tick()} == {"DIFFERENTIAL"}
        assert all(client.verify(f"sums_{i}").matches for i in range(EXPRESSIONS))


@pytest.mark.parametrize(
    ("expression", "settled"),
    [
        ("price * (1 - share)", True),
        ("-price * n", True),
        ("CASE WHEN n > 2 THEN price END", True),
        ("CASE WHEN n > 2 THEN price * share ELSE price * share * 1 END", True),
        ("CASE WHEN n > 2 THEN price ELSE 0 END", False),
        ("price * free", False),
        ("price / 2", False),
        ("coalesce(price, 0)", False),
    ],
)
def test_what_has_one_scale(db: Database, client: Client, expression: str, settled: bool) -> None:
    client.create_stream_table("sums", f"SELECT kind, sum({expression}) AS total FROM sales GROUP BY kind")
    client.tick()
    assert _counts_scales(db, "sums") is not settled


def _counts_scales(db: Database, name: str) -> bool:
    """Whether the groups of a stream table keep how many values there are of each scale."""
    pgt_id = db.value("SELECT pgt_id FROM pgtrickle.pgt_stream_tables WHERE pgt_name = %s", name)
    columns = "SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname ~ '_scales$'"
    return db.value(columns, f"pgtrickle_state.state_{pgt_id}") > 0


def _number(chosen: random.Random, depth: int) -> str:
    """Write an expression over the columns."""
    if depth == 0 or chosen.random() < 0.15:
        return chosen.choice([*COLUMNS, "price", "share", "2", "0.125", "NULL::numeric(8,3)"])
    one, other = _number(chosen, depth - 1), _number(chosen, depth - 1)
    match chosen.randrange(6):
        case 0 | 1 | 2:
            return f"({one} {chosen.choice('+-*')} {other})"
        case 3:
            return f"(- {one})"
        case 4:
            return f"(CASE WHEN n > 2 THEN {one} ELSE {other} END)"
        case _:
            return f"CAST({one} AS numeric(20,3))" if "free" not in one else f"({one} * 1.0)"
