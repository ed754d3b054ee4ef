"""Changes that cancel each other are left out, but not where one came before a cut and the other after it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import pytrickle
from pytrickle.client.client import Client
from pytrickle.refresh.values import RefreshResult
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

TABLES = """
CREATE TABLE parts (id int PRIMARY KEY, rare boolean, seen int);
CREATE TABLE lines (id int PRIMARY KEY, part int, n int, seen int);
CREATE INDEX ON lines (part);
INSERT INTO parts SELECT i, true, 0 FROM generate_series(1, 50) AS i;
INSERT INTO lines SELECT i, i % 40 + 1, 1, 0 FROM generate_series(1, 400) AS i;
ANALYZE;
SELECT pgtrickle.create_watermark_group('both', ARRAY['parts', 'lines']);
"""
QUERY = """SELECT p.id, s.n FROM parts p
JOIN (SELECT part, sum(n) AS n FROM lines GROUP BY part HAVING sum(n) > 0) s ON s.part = p.id WHERE p.rare"""
# What an explained query reads of a change buffer.
ENTRY = re.compile(r"pgt_delta_\d+(?:_\d+)? AS MATERIALIZED \(\n(.*?)\n\)[,\n]", re.DOTALL)
ADVANCE = "SELECT pgtrickle.advance_watermark('parts', {0}), pgtrickle.advance_watermark('lines', {0})"


@dataclass(frozen=True)
class Held:
    """The tables, a client on the engine's double, and `result`, which holds back."""

    db: Database
    client: Client

    def advance(self, day: int) -> None:
        self.db.execute(ADVANCE.format(f"timestamptz '2026-01-0{day}'"))

    def tick(self) -> RefreshResult:
        (result,) = self.client.tick()
        return result

    def shown(self) -> list[tuple[int, int]]:
        return self.db.execute("SELECT id, n FROM result ORDER BY id")

    def asked(self) -> list[tuple[int, int]]:
        return self.db.execute(QUERY + " ORDER BY id")


@pytest.fixture
def held(db: Database) -> Iterator[Held]:
    for statement in TABLES.strip().removesuffix(";").split(";\n"):
        db.execute(statement)
    with local_client(db.dsn) as (client, _):
        found = Held(db, client)
        found.advance(1)
        client.create_stream_table("result", QUERY, refresh_mode="DIFFERENTIAL", watermark_gating="hold_back")
        found.tick()
        yield found


# Which table has more changes decides which is joined as it was before, and which as it is then.
@pytest.mark.parametrize("further", [0, 9])
def test_a_row_that_went_after_the_cut_is_still_joined_at_the_cut(held: Held, further: int) -> None:
    held.db.execute(f"INSERT INTO parts SELECT i, true, 0 FROM generate_series(60, {60 + further}) AS i")
    held.db.execute("INSERT INTO lines VALUES (1000, 60, 5, 0), (1001, 60, 2, 0)")
    expected = held.asked()
    held.advance(2)
    held.db.execute("DELETE FROM parts WHERE id = 60")
    held.db.execute("UPDATE lines SET n = 0 WHERE part = 60")
    assert held.tick().action == "DIFFERENTIAL"
    assert (60, 7) in expected and held.shown() == expected
    held.advance(3)
    held.tick()
    assert held.shown() == held.asked()


def test_changes_since_the_frontier_are_read_once_unless_some_lie_beyond_the_cut(held: Held) -> None:
    held.db.execute("INSERT INTO parts VALUES (60, true, 0); INSERT INTO lines VALUES (1000, 60, 5, 0)")
    held.advance(2)
    relid = held.db.value("SELECT 'parts'::regclass::oid")
    sql = held.client.explain("result").sql
    assert f"pgt_delta_{relid} AS MATERIALIZED" in sql and "pgt_past_" not in sql
    held.db.execute("INSERT INTO parts VALUES (61, true, 0); INSERT INTO lines VALUES (1001, 60, 5, 0)")
    assert "AS MATERIALIZED" in (sql := held.client.explain("result").sql) and "pgt_past_" in sql
    assert held.tick().action == "DIFFERENTIAL"
    held.advance(3)
    held.tick()
    assert held.shown() == held.asked()


def test_updates_of_what_a_held_back_query_does_not_read_change_nothing(held: Held) -> None:
    before = held.shown()
    held.db.execute("UPDATE parts SET seen = seen + 1 WHERE id < 9; UPDATE lines SET seen = seen + 1 WHERE part = 3")
    held.advance(2)
    held.db.execute("UPDATE parts SET seen = seen + 1 WHERE id < 5; UPDATE lines SET n = 4 WHERE part = 3")
    result = held.tick()
    assert (result.action, result.rows_inserted, result.rows_deleted) == ("DIFFERENTIAL", 0, 0)
    assert held.shown() == before
    held.advance(3)
    held.tick()
    assert held.shown() == held.asked() != before


def test_a_row_that_came_and_went_is_not_evaluated(db: Database) -> None:
    db.execute("CREATE TABLE sales (id int PRIMARY KEY, amount int, seen int)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table(
            "shares", "SELECT id, 10 / amount AS share FROM sales", refresh_mode="DIFFERENTIAL_STRICT"
        )
        client.tick()
        db.execute("INSERT INTO sales VALUES (1, 0, 0)")
        db.execute("UPDATE sales SET amount = 5 WHERE id = 1")
        (result,) = client.tick()
        assert (result.action, result.error) == ("DIFFERENTIAL", None)
        assert db.execute("SELECT id, share FROM shares") == [(1, 2)]


def test_what_one_name_of_a_table_does_not_read_is_no_change_of_it(db: Database) -> None:
    db.execute("CREATE TABLE items (id int PRIMARY KEY, parent int, amount int, kind text)")
    db.execute("INSERT INTO items SELECT i, i / 2, i, 'kind ' || i % 3 FROM generate_series(1, 50) AS i")
    query = "SELECT a.id, a.amount, b.kind FROM items AS a JOIN items AS b ON b.id = a.parent"
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        client.create_stream_table("result", query, refresh_mode="DIFFERENTIAL")
        client.tick()
        db.execute("UPDATE items SET amount = 0 WHERE id = 7")
        text = client.explain("result").data["sql"]
        found = [db.execute(f"SELECT count(*) FROM ({entry}) AS e")[0][0] for entry in ENTRY.findall(text)]
        assert found == [2, 0]
        db.execute("UPDATE items SET kind = 'other', parent = 9 WHERE id IN (3, 20)")
        client.tick()
        assert db.execute("SELECT * FROM result ORDER BY id") == db.execute(f"{query} ORDER BY a.id")
