"""A function that claims to change nothing, and does, is stopped wherever a refresh computes with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pytrickle
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

TOOLS = """
CREATE TABLE items (id integer PRIMARY KEY, n integer);
CREATE TABLE written (n integer);
CREATE FUNCTION writes(n integer) RETURNS integer VOLATILE LANGUAGE plpgsql SET search_path = public
AS 'BEGIN IF n > 1 THEN INSERT INTO written VALUES (n); END IF; RETURN n; END';
CREATE FUNCTION claims(n integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql SET search_path = public
AS 'BEGIN RETURN (SELECT writes(n)); END';
INSERT INTO items VALUES (1, 1)
"""
ALONE = {"shown": "SELECT id, claims(n) AS n FROM items"}
GROUPED = {"shown": "SELECT claims(n) AS n, count(*) AS items FROM items GROUP BY 1"}
DIAMOND = {
    "left_side": "SELECT id, n FROM items",
    "right_side": "SELECT id FROM items",
    "shown": "SELECT id, claims(l.n) AS n FROM left_side AS l JOIN right_side AS r USING (id)",
}


@pytest.fixture
def tools(db: Database) -> Iterator[tuple[Database, pytrickle.Client]]:
    db.execute(TOOLS)
    with local_client(db.dsn) as (client, _):
        yield db, client


@pytest.mark.parametrize("tables", [ALONE, GROUPED, DIAMOND], ids=["alone", "grouped", "in a unit"])
def test_a_refresh_fails_where_a_function_writes(
    tools: tuple[Database, pytrickle.Client], tables: dict[str, str]
) -> None:
    db, client = tools
    for name, query in tables.items():
        client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    assert {result.action for result in client.tick()} == {"FULL"}
    # After a refresh of few changes the next one is one transaction from the beginning.
    db.execute("INSERT INTO items VALUES (3, 1)")
    assert {result.action for result in client.tick()} == {"DIFFERENTIAL"}
    db.execute("INSERT INTO items VALUES (2, 2)")
    shown = {result.stream_table: str(result.error) for result in client.tick()}["public.shown"]
    assert "read-only transaction" in shown
    assert db.execute("SELECT n FROM written") == []
    db.execute("UPDATE items SET n = 1")
    assert [result.error for result in client.tick()] == [None] * len(tables)
    assert client.verify("shown").matches
