"""A source whose waiting changes cancel each other, in the columns that a query reads, takes no part in its delta."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from pytrickle.catalog import change_ranges
from pytrickle.client.client import Client
from pytrickle.refresh import at_once
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.repeats import first

TABLES = """
CREATE TABLE shops (id int PRIMARY KEY, town int, rate float8, "100% seen" int);
CREATE TABLE towns (id int PRIMARY KEY, name text, seen int);
CREATE TABLE sales (shop int, n int, seen int);
CREATE INDEX ON shops (town);
CREATE INDEX ON sales (shop);
INSERT INTO towns SELECT i, 'town ' || i, 0 FROM generate_series(1, 6) AS i;
INSERT INTO shops SELECT i, i % 7, 0.1, 0 FROM generate_series(1, 20) AS i;
INSERT INTO sales SELECT i % 23, i % 5, 0 FROM generate_series(1, 80) AS i;
SELECT pgtrickle.create_watermark_group('all', ARRAY['shops', 'towns', 'sales']);
"""
QUERIES = {
    "joined": "SELECT s.n, h.rate, t.name FROM sales s JOIN shops h ON h.id = s.shop JOIN towns t ON t.id = h.town",
    "outer_joined": "SELECT t.name, h.id, s.n FROM towns t LEFT JOIN shops h ON h.town = t.id"
    " LEFT JOIN sales s ON s.shop = h.id",
    "grouped": "SELECT t.name, count(*) AS c, sum(s.n) AS n, max(s.n) AS m FROM sales s"
    " JOIN shops h ON h.id = s.shop JOIN towns t ON t.id = h.town GROUP BY t.name",
    "twice": "SELECT a.id, b.id AS other FROM shops a JOIN shops b ON b.town = a.town JOIN towns t ON t.id = a.town",
    "semijoined": "SELECT t.name FROM towns t WHERE EXISTS (SELECT FROM shops h WHERE h.town = t.id)"
    " AND t.id NOT IN (SELECT n FROM sales WHERE n IS NOT NULL)",
    "above_groups": "SELECT t.name, g.n FROM towns t JOIN (SELECT h.town, sum(s.n) AS n FROM shops h"
    " JOIN sales s ON s.shop = h.id GROUP BY h.town) g ON g.town = t.id",
}
ADVANCE = "SELECT pgtrickle.advance_watermark(name, timestamptz '2026-01-01Z' + {0} * interval '1 min')"
ADVANCE += " FROM unnest(ARRAY['shops', 'towns', 'sales']) AS name"
ROUNDS = 12


@pytest.fixture
def client(db: Database) -> Iterator[Client]:
    for statement in TABLES.strip().removesuffix(";").split(";\n"):
        db.execute(statement)
    with local_client(db.dsn) as (client, _):
        yield client


def _idle(rng: Random) -> str:
    return rng.choice(
        (
            'UPDATE shops SET "100% seen" = "100% seen" + 1',
            "UPDATE towns SET seen = seen + 1 WHERE id < 5",
            "UPDATE sales SET seen = seen + 1 WHERE n > 1",
            "UPDATE shops SET town = town + 1; UPDATE shops SET town = town - 1",
            "INSERT INTO sales VALUES (3, 4, 0), (3, 4, 1); DELETE FROM sales WHERE ctid IN"
            " (SELECT max(ctid) FROM sales WHERE (shop, n) = (3, 4) UNION SELECT min(ctid) FROM sales"
            " WHERE (shop, n) = (3, 4))",
        )
    )


def _change(rng: Random) -> str:
    one, other = rng.randint(1, 25), rng.randint(0, 7)
    return rng.choice(
        (
            f"UPDATE shops SET town = {other} WHERE id = {one}",
            f"UPDATE towns SET name = name || '!' WHERE id = {other}",
            f"INSERT INTO sales VALUES ({one}, {other}, 0)",
            f"DELETE FROM sales WHERE shop = {one}",
            f"INSERT INTO shops SELECT max(id) + 1, {other}, 0.1 FROM shops",
            f"DELETE FROM towns WHERE id = {other}; INSERT INTO towns VALUES ({other}, 'new', 0)",
            "TRUNCATE sales; INSERT INTO sales SELECT i % 23, i % 5, 0 FROM generate_series(1, 30) AS i",
        )
    )


@pytest.mark.parametrize("seed", first(1, (2, 0, 1, 4), then=0))
@pytest.mark.parametrize(
    ("gating", "engine"),
    first(2, [("none", "spark"), ("hold_back", "postgres"), ("none", "postgres"), ("hold_back", "spark")]),
)
def test_whatever_cancels_out_the_rows_are_those_of_the_query(
    db: Database, client: Client, seed: int, gating: str, engine: str
) -> None:
    db.execute(ADVANCE.format(0))
    for name, query in QUERIES.items():
        client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL", watermark_gating=gating)
    with local_client(db.dsn, engine=engine) as (refresher, _):
        assert _play(db, refresher, Random(seed), gating) > ROUNDS / 2


def _play(db: Database, client: Client, rng: Random, gating: str) -> int:
    """Change the sources and compare, again and again; return how many that one query reads were idle in all."""
    idle = 0
    client.tick()
    for minute in range(1, ROUNDS):
        for _ in range(rng.randint(1, 3)):
            db.execute((_idle if rng.random() < 0.7 else _change)(rng))
        db.execute(ADVANCE.format(minute))
        expected = {name: db.execute(query) for name, query in QUERIES.items()}
        for _ in range(rng.randint(0, 2)):
            db.execute((_idle if rng.random() < 0.5 else _change)(rng))
        idle += sum(source["idle"] for source in client.explain("joined").data["sources"])
        assert {result.action for result in client.tick()} <= {"DIFFERENTIAL", "NO_DATA"}
        for name, query in QUERIES.items():
            rows = expected[name] if gating == "hold_back" else db.execute(query)
            stored = db.execute(f"SELECT * FROM {name}")
            assert sorted(map(repr, stored)) == sorted(map(repr, rows)), (name, minute)
    return idle


def test_a_source_that_is_idle_has_no_terms_and_is_read_through_all_the_same(db: Database, client: Client) -> None:
    client.create_stream_table("joined", QUERIES["joined"])
    client.tick()
    db.execute("UPDATE towns SET seen = seen + 1; UPDATE sales SET n = n + 10 WHERE shop = 3")
    explained = client.explain("joined")
    assert explained.data["terms"] == ["old shops ⋈ old towns ⋈ Δsales"]
    assert "public.towns: 12 changed rows, which cancel each other in the columns that are read" in explained.text
    rows = db.value("SELECT count(*) FROM sales WHERE shop = 3")
    (result,) = client.tick()
    assert (result.rows_inserted, result.rows_deleted) == (rows, rows)
    counted = "SELECT delta_rows FROM pgtrickle.pgt_refresh_history ORDER BY refresh_id DESC LIMIT 1"
    assert db.value(counted) == 12 + 2 * rows
    (result,) = client.tick()
    assert result.action == "NO_DATA"


def test_where_all_sources_are_idle_a_refresh_takes_in_nothing(db: Database, client: Client) -> None:
    for name in ("joined", "grouped"):
        client.create_stream_table(name, QUERIES[name])
    client.tick()
    before = sorted(db.execute("SELECT * FROM grouped"))
    for _ in range(3):
        db.execute("UPDATE towns SET seen = seen + 1; UPDATE sales SET seen = seen + 1")
        for result in client.tick():
            assert (result.action, result.rows_inserted, result.rows_deleted) == ("DIFFERENTIAL", 0, 0)
    assert before and sorted(db.execute("SELECT * FROM grouped")) == before
    assert {result.action for result in client.tick()} == {"NO_DATA"}


def test_changes_up_to_the_cut_that_later_ones_take_back_are_shown(db: Database, client: Client) -> None:
    """Together they cancel each other, but the later ones lie beyond what is shown."""
    db.execute(ADVANCE.format(0))
    client.create_stream_table("joined", QUERIES["joined"], watermark_gating="hold_back")
    client.tick()
    before = sorted(db.execute(QUERIES["joined"]))
    for minute in range(1, 7, 2):
        db.execute("UPDATE towns SET name = name || '!'")
        db.execute(ADVANCE.format(minute))
        expected = sorted(db.execute(QUERIES["joined"]))
        db.execute("UPDATE towns SET name = left(name, -1)")
        assert not any(source["idle"] for source in client.explain("joined").data["sources"])
        (result,) = client.tick()
        assert result.rows_inserted > 0
        assert sorted(db.execute("SELECT * FROM joined")) == expected != before
        db.execute(ADVANCE.format(minute + 1))
        client.tick()
        assert sorted(db.execute("SELECT * FROM joined")) == before


def test_changes_that_cancel_in_other_columns_than_the_query_reads_now_are_taken_in(
    db: Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create_stream_table("joined", QUERIES["joined"])
    client.tick()
    towns = db.value("SELECT 'towns'::regclass::oid::bigint")
    for module in (at_once, change_ranges):
        monkeypatch.setattr(module, "partly_read", lambda definition: {towns: ("id",)} if definition else {})
    for _ in range(3):
        db.execute("UPDATE towns SET name = name || '!'")
        (result,) = client.tick()
        assert result.rows_inserted > 0
        assert sorted(db.execute("SELECT * FROM joined")) == sorted(db.execute(QUERIES["joined"]))


def test_floats_that_differ_in_their_last_digits_do_not_cancel(db: Database, client: Client) -> None:
    db.execute("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET extra_float_digits = 0', current_database()); END $$")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("rates", "SELECT h.id, h.rate, t.name FROM shops h JOIN towns t ON t.id = h.town")
        client.tick()
        for _ in range(3):
            db.execute("UPDATE shops SET rate = rate + 1e-16")
            client.tick()
            wrong = "SELECT count(*) FROM rates JOIN shops USING (id) WHERE rates.rate <> shops.rate"
            assert db.value("SELECT count(*) FROM rates") and db.value(wrong) == 0


@pytest.mark.parametrize("mode", ["DIFFERENTIAL", "FULL"])
def test_a_renamed_column_is_no_failure_however_often_the_query_was_refreshed(
    db: Database, client: Client, mode: str
) -> None:
    for name in ("joined", "grouped"):
        client.create_stream_table(name, QUERIES[name], refresh_mode=mode)
    for _ in range(3):
        client.tick()
        db.execute("UPDATE shops SET town = town + 1 WHERE id < 4")
    for (trigger,) in db.execute("SELECT evtname FROM pg_event_trigger"):
        db.execute(f"ALTER EVENT TRIGGER {trigger} DISABLE")
    db.execute("ALTER TABLE shops RENAME COLUMN town TO place")
    results = client.tick()
    assert len(results) == 2 and {result.error for result in results} == {None}
    assert all(client.verify(name).matches for name in ("joined", "grouped"))


@pytest.mark.parametrize("name", ["w", "pgt_waiting", "pgt_read", "pgt_b", "relid"])
def test_a_renamed_column_is_no_failure_whatever_its_name_means_in_statements_of_ours(
    db: Database, client: Client, name: str
) -> None:
    db.execute(f"ALTER TABLE shops RENAME COLUMN town TO {name}")
    client.create_stream_table("joined", QUERIES["joined"].replace("h.town", f"h.{name}"))
    client.tick()
    db.execute(f"ALTER TABLE shops RENAME COLUMN {name} TO place")
    db.execute("UPDATE shops SET place = place + 1 WHERE id < 4")
    for action in ("REINITIALIZE", "NO_DATA"):
        (result,) = client.tick()
        assert (result.action, result.error) == (action, None)
    assert client.verify("joined").matches


@pytest.mark.parametrize("engine", ["postgres", "spark"])
def test_what_cancels_each_other_counts_for_no_engine(db: Database, client: Client, engine: str) -> None:
    client.create_stream_table("joined", QUERIES["joined"], refresh_mode="DIFFERENTIAL")
    client.tick()
    db.execute("UPDATE towns SET seen = seen + 1")
    with local_client(db.dsn, engine=engine) as (other, _):
        found = {each["source"]: each["idle"] for each in other.explain("joined").data["sources"] if each["delta_rows"]}
    assert found == {"public.towns": True}
