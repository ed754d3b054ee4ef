"""Every test of the SQL side runs on the oldest supported PostgreSQL, and in the long runs on the newest too."""

import pytest

from tests.conftest import Database
from tests.sql.checks import create


@pytest.fixture
def db(every_db: Database) -> Database:
    """A fresh database with pytrickle, once per supported PostgreSQL."""
    return every_db


@pytest.fixture
def shop(db: Database) -> Database:
    """Empty orders and order lines in one watermark group, with a stream table over both that holds back."""
    db.execute("CREATE TABLE orders (id integer PRIMARY KEY, customer text, amount numeric)")
    db.execute("CREATE TABLE order_lines (id integer PRIMARY KEY, order_id integer, quantity integer)")
    db.execute("SELECT pgtrickle.create_watermark_group('pipeline', ARRAY['orders', 'order_lines'])")
    db.execute(
        "SELECT pgtrickle.create_stream_table('report', watermark_gating => 'hold_back', query => "
        "'SELECT o.id, o.customer, o.amount, l.quantity FROM orders AS o JOIN order_lines AS l ON l.order_id = o.id')"
    )
    return db


@pytest.fixture
def tables(db: Database) -> Database:
    """Two tables, a view on one and a view that joins that with the other."""
    db.execute('CREATE TABLE t (a integer, b text, c numeric(10, 2), "D d" timestamptz)')
    db.execute("CREATE TABLE u (a integer, x text)")
    db.execute("CREATE VIEW v AS SELECT a, c FROM t WHERE b IS NOT NULL")
    db.execute("CREATE VIEW vv AS SELECT v.c, u.x FROM v JOIN u USING (a)")
    return db


@pytest.fixture
def gated(db: Database) -> Database:
    """A report over two sources in one group."""
    for source in ("orders", "order_lines"):
        db.execute(f"CREATE TABLE {source} (id integer)")
    db.execute("SELECT pgtrickle.create_watermark_group('pipeline', ARRAY['orders', 'order_lines'])")
    create(db, "SELECT o.id FROM orders AS o JOIN order_lines AS l USING (id)", "report")
    return db


@pytest.fixture
def sources(db: Database) -> Database:
    """Three sources that nobody has advanced, in a session that reads moments in UTC."""
    for name in "abc":
        db.execute(f"CREATE TABLE {name} (id integer)")
    db.execute("SET TimeZone = 'UTC'")
    return db


@pytest.fixture
def followed(db: Database) -> Database:
    """A table with a feed, at three versions: a row was inserted after each."""
    db.execute("CREATE TABLE t (a integer PRIMARY KEY)")
    db.execute("SELECT pgtrickle.create_feed('f', 't')")
    for day in (1, 2, 3):
        db.execute("SELECT pgtrickle.advance_watermark('t', %s::date)", f"2026-01-{day:02}")
        db.execute("INSERT INTO t VALUES (%s)", day)
    return db
