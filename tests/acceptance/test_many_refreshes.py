"""Refreshes of few rows leave nothing behind in the system catalogs, however many there are."""

from __future__ import annotations

import pytest

import pytrickle
from tests.conftest import Database
from tests.repeats import first
from tests.waiting import wait_for

QUERIES = {
    "filtered": "SELECT id, amount FROM orders WHERE amount > 3",
    "named": "SELECT o.id, o.amount, c.name FROM orders AS o JOIN customers AS c ON c.id = o.customer",
    "totals": "SELECT c.name, count(*) AS n, sum(o.amount) AS amount, min(o.amount) AS least"
    " FROM orders AS o JOIN customers AS c ON c.id = o.customer GROUP BY c.name",
    "amounts": "SELECT DISTINCT customer, amount FROM orders",
    "ranked": "SELECT id, customer, row_number() OVER (PARTITION BY customer ORDER BY id) AS place FROM orders",
    "first_five": "SELECT id, amount FROM orders ORDER BY id DESC LIMIT 5",
    "largest": "SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer ORDER BY 2 DESC, 1 LIMIT 3",
    "onward": "SELECT name, amount FROM totals WHERE n > 1",
}
ORDERS, CUSTOMERS = 200, 20
TABLES = (
    "CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL)",
    "CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, amount int NOT NULL)",
    "CREATE INDEX ON orders (customer)",
    f"INSERT INTO customers SELECT n, 'customer ' || n FROM generate_series(0, {CUSTOMERS - 1}) AS n",
    f"INSERT INTO orders SELECT n, n % {CUSTOMERS}, n % 7 FROM generate_series(1, {ORDERS}) AS n",
)
CHANGES = (
    f"INSERT INTO orders SELECT n, n %% {CUSTOMERS}, n %% 7 FROM generate_series(%s + 1, %s + 3) AS n",
    "UPDATE orders SET amount = amount + 1 WHERE id = %s - 50",
    "DELETE FROM orders WHERE id BETWEEN %s - 199 AND %s - 197",
)
CHURN = """
SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_sys_tables
WHERE schemaname = 'pg_catalog' AND relname IN ('pg_class', 'pg_attribute', 'pg_type', 'pg_depend')
"""
SESSIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
# So many pages hold the rows of some ticks; dead rows among them are used again. Only the history keeps a row for each
# refresh, until its retention has passed.
MOST_BYTES, MOST_OF_AN_ENTRY = 8 * 1024 * 1024, 600
HISTORY = "pgtrickle.pgt_refresh_history"
SIZES = """
SELECT format('%s.%s', n.nspname, c.relname), pg_total_relation_size(c.oid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND (n.nspname IN ('pgtrickle', 'pgtrickle_changes', 'pgtrickle_state')
    OR c.relname IN ('pg_class', 'pg_attribute', 'pg_type'))
"""
MANY = 40
# A schema that is created, and be it for a moment, has every session make its plans anew.
SCHEMAS = "SELECT n_tup_ins FROM pg_stat_sys_tables WHERE relid = 'pg_namespace'::regclass"
# An update that finds room on the row's page touches no index, and its old row is cleared away without a vacuum.
UPDATED = """
SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables
WHERE schemaname = 'pgtrickle' AND relname IN ('pgt_stream_tables', 'pgt_dependencies', 'pgt_change_tracking')
"""


@pytest.mark.parametrize("ticks", first(1, (60, 2_000), then=0))
def test_many_refreshes_of_few_rows_hardly_write_to_the_system_catalogs(db: Database, ticks: int) -> None:
    for statement in TABLES:
        db.execute(statement)
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        for name, query in QUERIES.items():
            client.create_stream_table(name, query)
        client.create_stream_table("recomputed", QUERIES["totals"], refresh_mode="FULL")
        client.tick()
    one, many = _written_by(db, range(1)), _written_by(db, range(1, ticks))
    # A table that has grown to twice its size is analysed again, for which temporary views are made.
    assert many <= 10 * one
    sizes = dict(db.execute(SIZES))
    entries = db.value(f"SELECT count(*) FROM {HISTORY}")
    assert sizes.pop(HISTORY) <= MOST_BYTES / 8 + MOST_OF_AN_ENTRY * entries
    assert {name: size for name, size in sizes.items() if size > MOST_BYTES} == {}


def test_refreshes_update_the_rows_of_many_stream_tables_in_place(db: Database) -> None:
    db.execute("CREATE TABLE events (id int PRIMARY KEY, amount int NOT NULL)")
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        for number in range(MANY):
            source = f"t{number - 1}" if number % 2 else "events"
            client.create_stream_table(f"t{number}", f"SELECT id, amount + {number} AS amount FROM {source}")
        for number in range(5):
            db.execute("INSERT INTO events VALUES (%s, 1)", number)
            client.tick()
    wait_for(lambda: db.value(SESSIONS) == 0, "the sessions of the client to end")
    in_place = {name: (updated, hot) for name, updated, hot in db.execute(UPDATED)}
    assert len(in_place) == 3
    assert all(hot >= 0.8 * updated > MANY for updated, hot in in_place.values()), in_place


def test_a_session_makes_one_temporary_schema_however_many_stream_tables_it_creates(db: Database) -> None:
    db.execute("CREATE TABLE events (id int PRIMARY KEY, amount int NOT NULL)")
    before = db.value(SCHEMAS)
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        for number in range(6):
            query = f"SELECT amount, count(*) AS n FROM events WHERE id <> {number} GROUP BY amount"
            client.create_stream_table(f"t{number}", query, refresh_mode="DIFFERENTIAL")
    wait_for(lambda: db.value(SESSIONS) == 0, "the sessions of the client to end")
    # The schema itself, and that of what is too long for a page.
    assert db.value(SCHEMAS) - before <= 2


def _written_by(db: Database, ticks: range) -> int:
    """Count what a client writes to the system catalogs that ticks so often, and analyses every query once."""
    before = _churn(db)
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        for number in ticks:
            _change(db, ORDERS + 3 * number)
            results = client.tick()
            whole = {result.stream_table for result in results if result.action == "FULL"}
            assert whole == {"public.recomputed"} and len(results) == len(QUERIES) + 1, results
            assert {result.action for result in results} == {"DIFFERENTIAL", "FULL"}, results
        assert all(client.verify(name).matches for name in QUERIES)
    return _churn(db) - before


def _change(db: Database, last: int) -> None:
    for statement in CHANGES:
        db.execute(statement, *[last] * statement.count("%s"))


def _churn(db: Database) -> int:
    """Count the rows written to the system catalogs, which sessions tell when they end."""
    wait_for(lambda: db.value(SESSIONS) == 0, "the sessions of the client to end")
    return int(db.value(CHURN))
