"""What a differential refresh reads grows with the changes and what they touch, not with the rest of the tables."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from psycopg import sql

from pytrickle.client.client import Client
from pytrickle.database import settle
from pytrickle.plan.algebra.relation import operations, relids
from pytrickle.plan.placement import PLANNER, SETTINGS, Place, settings_of
from tests.conftest import Database
from tests.equivalence.local_engine import LocalEngine, local_client
from tests.repeats import first

ORDERS, PARTS = 2_000, 3_000
TABLES = f"""
CREATE TABLE orders (id int PRIMARY KEY, status text NOT NULL);
CREATE TABLE lines (
    id int PRIMARY KEY, order_id int NOT NULL, supplier int NOT NULL, part int NOT NULL, n int NOT NULL
);
CREATE TABLE parts (id int PRIMARY KEY, brand int NOT NULL, rare boolean NOT NULL);
CREATE TABLE banned (supplier int PRIMARY KEY);
INSERT INTO orders SELECT i, CASE i % 2 WHEN 0 THEN 'F' ELSE 'O' END FROM generate_series(1, {ORDERS}) AS i;
INSERT INTO lines SELECT i, i % {ORDERS} + 1, i % 40, i % {PARTS} + 1, i % 9 FROM generate_series(1, 30000) AS i;
INSERT INTO parts SELECT i, i % 300, i % 100 = 0 FROM generate_series(1, {PARTS}) AS i;
INSERT INTO banned SELECT i FROM generate_series(1, 40, 7) AS i;
CREATE TABLE countries (id int PRIMARY KEY, name text);
CREATE TABLE suppliers (id int PRIMARY KEY, country int);
INSERT INTO countries SELECT i, 'c' || i FROM generate_series(0, 9) AS i;
INSERT INTO suppliers SELECT i, i % 10 FROM generate_series(0, 39) AS i;
CREATE INDEX ON lines (order_id);
CREATE INDEX ON lines (supplier);
CREATE INDEX ON lines (part);
"""
WAITING = """SELECT o.status, count(*) AS n FROM lines l1 JOIN orders o ON o.id = l1.order_id
WHERE EXISTS (SELECT FROM lines l2 WHERE l2.order_id = l1.order_id AND l2.supplier <> l1.supplier) GROUP BY o.status"""
BRANDS = """SELECT p.brand, count(DISTINCT l.supplier) AS n FROM parts p JOIN lines l ON l.part = p.id
WHERE l.supplier NOT IN (SELECT supplier FROM banned) GROUP BY p.brand"""

CHANGES = (
    ("UPDATE parts SET rare = NOT rare WHERE id % 50 = 0", "UPDATE lines SET n = n + 2 WHERE part % 10 = 0"),
    ("UPDATE parts SET rare = true, brand = 7 WHERE id = 11", "UPDATE lines SET part = 11 WHERE id % 3000 = 5"),
    ("DELETE FROM parts WHERE rare AND id % 3 = 0", "DELETE FROM lines WHERE part % 100 = 0 AND id % 2 = 0"),
    ("UPDATE suppliers SET country = 3 WHERE id % 4 = 0", "UPDATE lines SET order_id = order_id + 1 WHERE id % 9 = 0"),
    ("UPDATE countries SET name = 'c' || (id + 1) % 10", "UPDATE lines SET supplier = supplier + 1 WHERE id % 7 = 0"),
    ("INSERT INTO parts SELECT i, 7, true FROM generate_series(3001, 3020) AS i", "DELETE FROM suppliers WHERE id = 8"),
    ("UPDATE lines SET part = 3000 + id % 20 WHERE id % 500 = 0", "UPDATE parts SET id = -id WHERE rare"),
)
CHEAP = """SELECT count(*) AS n, sum(l.n) AS s FROM lines l JOIN parts p ON p.id = l.part
WHERE p.rare AND l.n < (SELECT 0.9 * avg(x.n) FROM lines x WHERE x.part = p.id)"""
ALONE = """SELECT l1.id FROM lines l1 JOIN suppliers s ON s.id = l1.supplier JOIN countries c ON c.id = s.country
WHERE c.name = 'c3' AND NOT EXISTS (SELECT FROM lines l2 WHERE l2.order_id = l1.order_id AND l2.supplier <> l1.supplier)
"""
FINISHED = """SELECT s.id, count(*) AS n FROM lines l1 JOIN suppliers s ON s.id = l1.supplier
JOIN countries c ON c.id = s.country JOIN orders o ON o.id = l1.order_id WHERE o.status = 'F' AND c.name = 'c3'
AND NOT EXISTS (SELECT FROM lines l2 WHERE l2.order_id = l1.order_id AND l2.supplier <> l1.supplier) GROUP BY s.id"""
STOCK = """SELECT s.id FROM suppliers s JOIN countries c ON c.id = s.country WHERE c.name = 'c3' AND s.id IN (
SELECT l.supplier FROM lines l WHERE l.n > (SELECT 0.5 * avg(x.n) FROM lines x WHERE x.part = l.part))"""
CHEAPEST = """SELECT p.id, l.supplier FROM parts p JOIN lines l ON l.part = p.id JOIN suppliers s ON s.id = l.supplier
JOIN countries c ON c.id = s.country WHERE p.rare AND c.name = 'c3' AND l.n = (
SELECT min(x.n) FROM lines x JOIN suppliers y ON y.id = x.supplier WHERE x.part = p.id)"""
OFTEN = """SELECT p.id, s.n FROM parts p JOIN (
SELECT part, sum(n) AS n FROM lines GROUP BY part HAVING sum(n) > 40) s ON s.part = p.id WHERE p.rare"""
ABOVE = """SELECT o.status, count(*) AS n FROM lines l JOIN orders o ON o.id = l.order_id
WHERE l.n > (SELECT avg(n) FROM lines) AND NOT EXISTS (SELECT FROM banned WHERE supplier = l.supplier)
GROUP BY o.status"""
NEITHER = """SELECT count(*) AS n FROM lines WHERE (supplier, part) NOT IN (SELECT id, country FROM pairs)"""
EITHER = """SELECT l.id, p.brand FROM lines l JOIN parts p
ON (p.id = l.part AND p.rare AND l.n > 3) OR (p.id = l.part AND p.brand = 7)"""
PEAKS = """WITH counts AS (SELECT order_id, n, count(*) AS c FROM lines GROUP BY order_id, n),
most AS (SELECT n, max(c) AS m FROM counts GROUP BY n)
SELECT counts.order_id, counts.n FROM counts JOIN most ON most.n = counts.n AND most.m = counts.c"""
TWICE = """WITH sums AS (SELECT part, sum(n) AS n FROM lines GROUP BY part)
SELECT p.id, sums.n FROM parts p JOIN sums ON sums.part = p.id WHERE p.rare
UNION ALL SELECT p.id, sums.n FROM parts p JOIN sums ON sums.part = p.id WHERE p.brand = 7"""


@dataclass(frozen=True)
class World:
    """The tables, and a client on the engine's double."""

    db: Database
    client: Client
    engine: LocalEngine

    def create(self, query: str) -> None:
        self.client.create_stream_table("result", query, refresh_mode="DIFFERENTIAL")
        self.client.tick()

    def rows_read(self) -> Counter[str]:
        """Count the rows that the next refresh looks at, by table; those of an index scan only if it returns them.

        Under "joined" are those that come out of joins, under "compared" also those that joins throw away.
        """
        facts = self.client.explain("result").data
        counted: Counter[str] = Counter()
        with self.db.connect() as connection, connection.transaction():
            for statement in (*PLANNER, *SETTINGS[Place(facts["place"])]):
                connection.execute(statement.encode())
            for text in filter(None, (facts["sql"], facts["recomputation_sql"])):
                row = connection.execute(sql.SQL(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}")).fetchone()
                assert row is not None
                _count(row[0][0]["Plan"], counted)
        return counted

    def refresh(self) -> None:
        (result,) = self.client.tick()
        assert result.action == "DIFFERENTIAL" and self.client.verify("result").matches


@pytest.fixture
def world(db: Database) -> Iterator[World]:
    """The tables, analyzed; no stream table yet."""
    with db.connect() as connection:
        connection.execute(TABLES.encode())
        connection.execute("ANALYZE")
    with local_client(db.dsn, direct_delta_rows=0) as (client, engine):
        yield World(db, client, engine)


def test_updates_of_columns_that_the_query_does_not_read_join_nothing(world: World) -> None:
    world.create("SELECT p.brand, sum(l.n) AS n FROM parts p JOIN lines l ON l.part = p.id GROUP BY p.brand")
    world.db.execute("UPDATE parts SET rare = NOT rare WHERE id <= 20")
    assert world.rows_read()["lines"] == 0
    world.db.execute("UPDATE parts SET brand = brand + 1 WHERE id = 7")
    assert 0 < world.rows_read()["lines"] <= 40
    world.refresh()


def test_an_update_that_only_changes_how_a_value_looks_is_shown(world: World) -> None:
    world.db.execute("CREATE TABLE prices (id int PRIMARY KEY, price numeric, seen int)")
    world.db.execute("INSERT INTO prices VALUES (1, 1.0, 1), (2, 2.0, 1)")
    world.create("SELECT p.id, p.price FROM prices p JOIN parts USING (id)")
    world.db.execute("UPDATE prices SET price = 1.00, seen = 2 WHERE id = 1")
    world.refresh()
    assert world.db.execute("SELECT price::text FROM result ORDER BY id") == [("1.00",), ("2.0",)]


def test_a_subquery_asks_only_the_tables_whose_columns_it_refers_to(world: World) -> None:
    world.create(WAITING)
    world.db.execute("UPDATE lines SET supplier = supplier + 1 WHERE id % 1000 = 0")
    world.db.execute("UPDATE orders SET status = 'P' WHERE id % 500 = 0")
    world.refresh()
    query = world.engine.plans[-1].shape.query
    assert query is not None
    (asked,) = operations(query.rows)
    assert relids(asked.input) == {world.db.value("SELECT 'lines'::regclass::oid::bigint")}


def test_touched_groups_without_an_index_are_found_in_one_pass(world: World) -> None:
    world.create(BRANDS)
    world.db.execute("UPDATE parts SET brand = brand + 1 WHERE id % 100 = 0")
    read = world.rows_read()
    assert 0 < read["parts"] <= 4 * PARTS
    world.refresh()


@pytest.mark.parametrize("query", [CHEAP, OFTEN, TWICE], ids=["scalar subquery", "having", "used twice"])
def test_groups_that_nothing_joins_are_not_computed(world: World, query: str) -> None:
    world.create(query)
    world.db.execute("UPDATE lines SET n = n + 1 WHERE id % 19 = 0")
    read = world.rows_read()
    assert 0 < read["lines"] <= 3_000
    world.refresh()


def test_a_join_in_every_arm_of_an_or_uses_the_index(world: World) -> None:
    world.create(EITHER)
    world.db.execute("UPDATE lines SET n = n + 1 WHERE id % 600 = 7")
    facts = world.client.explain("result").data
    assert (facts["place"], facts["missing_indexes"]) == (Place.INDEX.value, [])
    world.refresh()


def test_groups_joined_by_a_part_of_their_keys_are_not_searched_one_by_one(world: World) -> None:
    world.create(PEAKS)
    world.db.execute("UPDATE lines SET n = n + 1 WHERE id % 100 = 0")
    assert world.client.explain("result").data["place"] == Place.POSTGRES.value
    assert 30_000 <= world.rows_read()["lines"] <= 300_000
    world.refresh()


def test_rows_without_nulls_are_found_by_their_equals_alone(world: World) -> None:
    world.db.execute("CREATE TABLE pairs (id int, country int)")
    world.db.execute("INSERT INTO pairs SELECT i % 30, i FROM generate_series(1, 1000) AS i")
    world.db.execute("INSERT INTO pairs VALUES (NULL, 3); ALTER TABLE lines ALTER supplier DROP NOT NULL")
    world.db.execute("ANALYZE pairs; UPDATE lines SET supplier = NULL WHERE id < 4")
    world.create(NEITHER)
    world.db.execute("UPDATE lines SET n = 10 - n, part = part + 1 WHERE id % 100 = 0")
    world.db.execute("UPDATE pairs SET country = country + 1 WHERE id = 8")
    assert 0 < world.rows_read()["compared"] <= 300_000
    world.refresh()


def test_rows_above_the_old_and_the_new_average_are_not_joined(world: World) -> None:
    world.create(ABOVE)
    world.db.execute("UPDATE lines SET n = n + 1 WHERE id % 100 = 0")
    assert 0 < world.rows_read()["joined"] <= 10_000
    world.refresh()
    world.db.execute("UPDATE lines SET n = n + 90 WHERE id % 50 = 0")
    world.refresh()


@pytest.mark.parametrize(
    "condition",
    [
        "l.id > (SELECT at FROM clock) - 5000",
        "l.id > (SELECT max(at) FROM clock)",
        "l.part = (SELECT at FROM clock) % 9",
    ],
    ids=["row", "aggregate", "equal"],
)
def test_rows_that_compare_otherwise_with_a_new_limit_are_found_by_the_index(world: World, condition: str) -> None:
    world.db.execute("CREATE TABLE clock (at int); INSERT INTO clock VALUES (20000)")
    world.create(f"SELECT l.id, o.status FROM lines l JOIN orders o ON o.id = l.order_id WHERE {condition}")
    world.db.execute("UPDATE clock SET at = at + 40; UPDATE lines SET n = n + 1, part = part + 1 WHERE id % 3000 = 0")
    assert 20 <= world.rows_read()["lines"] <= 100
    world.refresh()


def test_changes_of_tables_that_only_the_keys_link_are_not_paired(world: World) -> None:
    world.create(FINISHED)
    world.db.execute("UPDATE orders SET status = CASE status WHEN 'F' THEN 'O' ELSE 'F' END WHERE id % 2 = 0")
    world.db.execute("INSERT INTO suppliers SELECT i, i % 10 FROM generate_series(100, 1100) AS i")
    world.db.execute("UPDATE lines SET n = n + 1, supplier = (supplier + 1) % 40 WHERE id % 100 = 0")
    assert 0 < world.rows_read()["joined"] <= 30_000
    world.refresh()


def test_a_near_table_keeps_keys_out_though_tables_behind_it_changed_too(world: World) -> None:
    world.create(CHEAPEST)
    for statement in (
        "UPDATE suppliers SET country = (country + 1) % 10 WHERE id = 3",
        "UPDATE countries SET name = 'x' WHERE id = 4",
        "UPDATE lines SET n = n + 1 WHERE id % 500 = 0",
        "UPDATE parts SET rare = NOT rare WHERE id % 500 = 0",
    ):
        world.db.execute(statement)
    assert 0 < world.rows_read()["joined"] <= 6_000
    world.refresh()


def test_a_change_is_tested_once_whatever_joins_it(world: World) -> None:
    world.db.execute("INSERT INTO suppliers SELECT i, i % 10 FROM generate_series(100, 20000) AS i; ANALYZE suppliers")
    world.create(STOCK)
    world.db.execute("UPDATE lines SET n = n + 1 WHERE id % 100 = 0")
    assert 0 < world.rows_read()["suppliers"] <= 1_300
    world.refresh()


@pytest.mark.parametrize(
    "query",
    first(2, (CHEAP, OFTEN, CHEAPEST, STOCK, FINISHED, ALONE, ABOVE, TWICE)),
    ids=["scalar subquery", "having", "near", "tested once", "only keys", "not exists", "compared", "used twice"],
)
def test_keys_admitted_before_or_after_a_change_are_computed(world: World, query: str) -> None:
    world.create(query)
    actions = []
    for statements in CHANGES:
        with world.db.connect() as connection, connection.transaction():
            for statement in statements:
                connection.execute(statement.encode())
        actions += [result.action for result in world.client.tick()]
        assert world.client.verify("result").matches
    assert actions.count("DIFFERENTIAL") >= 5 and set(actions) <= {"DIFFERENTIAL", "NO_DATA"}


def _count(node: dict[str, Any], counted: Counter[str]) -> None:
    if "Relation Name" in node:
        each = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        counted[node["Relation Name"]] += round(each * node["Actual Loops"])
    if node["Node Type"] in ("Nested Loop", "Hash Join", "Merge Join"):
        counted["joined"] += round(node["Actual Rows"] * node["Actual Loops"])
        each = node["Actual Rows"] + node.get("Rows Removed by Join Filter", 0)
        counted["compared"] += round(each * node["Actual Loops"])
    for child in node.get("Plans", ()):
        _count(child, counted)


def test_a_lookup_by_two_keys_reads_no_second_index(db: Database) -> None:
    """PostgreSQL would read hundreds of entries of that to leave out a few rows, once for each row that asks."""
    db.execute(
        "CREATE TABLE wide AS SELECT g AS id, hashint4(g) & 8191 AS few, hashint4(-g) & 127 AS many,"
        " repeat('x', 60) AS rest FROM generate_series(1, 100000) AS g"
    )
    for statement in ("CREATE INDEX ON wide (few)", "CREATE INDEX ON wide (many)", "ANALYZE wide"):
        db.execute(statement)
    lookup = b"EXPLAIN SELECT * FROM wide WHERE few = 5 AND many = 7"
    with db.connect() as connection, connection.transaction():
        connection.execute("SET LOCAL random_page_cost = 1.1")
        assert any("BitmapAnd" in line for (line,) in connection.execute(lookup))
        settle(connection, settings_of(Place.INDEX, 1))
        plan = [line for (line,) in connection.execute(lookup)]
    assert plan[0].startswith("Index Scan using wide_few_idx") and not any("many_idx" in line for line in plan)
