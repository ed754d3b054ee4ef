"""A database that an earlier version made and filled is upgraded in place; every stream table goes on from there."""

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from pytrickle.catalog import install as migrate
from pytrickle.errors import CatalogVersionMismatch
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

ROOT = Path(__file__).parents[2]
# The last commit before the tree was moved and the private functions left the schema of the public ones.
BEFORE = "252c5ed"
PARTS = ("pytrickle", "sql", "tests")

TABLES = """
CREATE TABLE orders (id integer PRIMARY KEY, customer integer, amount numeric, at timestamptz);
CREATE TABLE order_lines (id integer PRIMARY KEY, order_id integer, item text, n integer);
CREATE TABLE customers (id integer PRIMARY KEY, name text);
INSERT INTO customers SELECT i, 'customer ' || i FROM generate_series(1, 5) AS i;
INSERT INTO orders SELECT i, i % 5 + 1, i * 1.5, '2026-03-01 00:00Z'::timestamptz + i * interval '1 minute'
FROM generate_series(1, 40) AS i;
INSERT INTO order_lines SELECT i, i % 40 + 1, 'item ' || i % 7, i % 3 FROM generate_series(1, 90) AS i;
"""
# Made before the upgrade, and once more after it.
CHANGES = (
    "INSERT INTO orders SELECT max(id) + 1, 6, 70, '2026-03-01 01:00Z'::timestamptz FROM orders",
    "UPDATE orders SET amount = amount + 1 WHERE id % 9 = 0",
    "DELETE FROM order_lines WHERE id IN (SELECT max(id) FROM order_lines)",
    "UPDATE customers SET name = name || ', renamed' WHERE id = 3",
    "SELECT pgtrickle.advance_watermark(source, '2026-03-01 00:40Z'::timestamptz + (SELECT max(id) FROM orders)"
    " * interval '1 minute') FROM unnest('{orders,order_lines}'::regclass[]) AS source",
)
QUERIES = {
    "big_orders": "SELECT id, amount FROM orders WHERE amount > 10",
    "totals": "SELECT customer, sum(amount) AS total, count(*) AS n, avg(amount) AS mean, min(amount) AS least,"
    " max(at) AS newest FROM orders GROUP BY customer",
    "complete_orders": "SELECT o.id, o.amount, l.item, l.n FROM orders AS o JOIN order_lines AS l ON l.order_id = o.id",
    "named_orders": "SELECT o.id, c.name FROM orders AS o LEFT JOIN customers AS c ON c.id = o.customer",
    "ranked": "SELECT id, customer, rank() OVER (PARTITION BY customer ORDER BY amount DESC, id) AS place FROM orders",
    "items": "SELECT DISTINCT item FROM order_lines",
    "without_lines": "SELECT id FROM orders AS o WHERE NOT EXISTS (SELECT FROM order_lines WHERE order_id = o.id)",
    "best": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 5",
    "big_totals": "SELECT customer, total FROM totals WHERE total > 100",
}
EARLIER = """
import json, sys, psycopg, pytrickle
from pytrickle import migrate
from tests.equivalence.local_engine import local_client

work = json.load(sys.stdin)
assert pytrickle.__file__.startswith(work["before"]), pytrickle.__file__
dsn, tables, queries, changes = work["dsn"], work["tables"], work["queries"], work["changes"]
with psycopg.connect(dsn, autocommit=True) as connection:
    migrate.install(connection)
    connection.execute(tables)
    connection.execute("SELECT pgtrickle.set_event_time('orders', 'at', too_late => '1 day')")
    for source in ("orders", "order_lines"):
        connection.execute("SELECT pgtrickle.advance_watermark(%s, '2026-03-01 00:40Z')", [source])
    connection.execute("SELECT pgtrickle.create_watermark_group('shop', ARRAY['orders', 'order_lines'])")
    with local_client(dsn) as (client, _):
        for name, query in queries.items():
            options = {"watermark_gating": "hold_back"} if name == "complete_orders" else {}
            client.create_stream_table(name, query, **options)
        client.tick()
    for change in changes:
        connection.execute(change)
"""


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The package and the SQL of the earlier version."""
    found = subprocess.run(
        ["git", "archive", BEFORE, "pytrickle", "sql", "tests"], cwd=ROOT, capture_output=True, check=False
    )
    if found.returncode:
        pytest.skip("the history of the project is not here")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def test_what_an_earlier_version_made_goes_on_differentially_after_the_upgrade(
    every_empty_db: Database, before: Path
) -> None:
    db = every_empty_db
    work = {"dsn": db.dsn, "before": str(before), "tables": TABLES, "queries": QUERIES, "changes": CHANGES}
    subprocess.run(
        [sys.executable, "-c", EARLIER],
        input=json.dumps(work),
        text=True,
        env={**os.environ, "PYTHONPATH": str(before)},
        cwd=before,
        check=True,
    )
    with pytest.raises(CatalogVersionMismatch), local_client(db.dsn) as (client, _):
        client.tick()
    migrate.install(db.connect())
    with local_client(db.dsn) as (client, _):
        for _ in range(2):
            results = client.tick()
            assert {result.stream_table.removeprefix("public.") for result in results} == QUERIES.keys()
            assert {(result.action, result.error) for result in results} == {("DIFFERENTIAL", None)}
            assert all(result.matches for result in client.verify())
            for change in CHANGES:
                db.execute(change)


def test_a_refresher_that_still_runs_stops_once_another_version_was_installed(db: Database) -> None:
    db.execute("CREATE TABLE orders (id integer)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("all_orders", "SELECT id FROM orders")
        client.tick()
        db.execute("UPDATE pgtrickle.pgt_schema_version SET checksum = 'of another version' WHERE version = 0")
        db.execute("INSERT INTO orders VALUES (1)")
        for _ in range(2):
            with pytest.raises(CatalogVersionMismatch):
                client.tick()
        with pytest.raises(CatalogVersionMismatch):
            client.refresh("all_orders")
    assert db.execute("SELECT * FROM all_orders") == []
