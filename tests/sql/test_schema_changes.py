"""Sources change: nothing happens, PostgreSQL refuses, or stream tables are reinitialized; and no loader fails."""

from __future__ import annotations

import psycopg
import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.sql.schema_changes import changing_world

HARMLESS = {
    "column added": "ALTER TABLE orders ADD COLUMN extra text DEFAULT 'e'",
    "generated column added": "ALTER TABLE orders ADD COLUMN later integer GENERATED ALWAYS AS (id + 1) STORED",
    "unread column renamed": "ALTER TABLE orders RENAME COLUMN unread TO ignored",
    "unread column retyped": "ALTER TABLE orders ALTER COLUMN ignored TYPE varchar(9)",
    "unread column dropped": "ALTER TABLE orders DROP COLUMN ignored",
    "default changed": "ALTER TABLE orders ALTER COLUMN region SET DEFAULT 'south'",
    "NOT NULL set": "ALTER TABLE orders ALTER COLUMN region SET NOT NULL",
    "constraint added": "ALTER TABLE orders ADD CONSTRAINT few CHECK (amount > 0)",
    "primary key dropped": "ALTER TABLE orders DROP CONSTRAINT orders_pkey",
    "index created": "CREATE INDEX ON orders (region)",
    "column granted": "GRANT SELECT (region) ON orders TO PUBLIC",
    "table rewritten": "VACUUM FULL orders",
    "replica identity changed": "ALTER TABLE orders REPLICA IDENTITY FULL",
    "row-level security that does not apply to the refresher": "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
    "enum value added": "ALTER TYPE mood ADD VALUE 'middle'",
    "enum value renamed": "ALTER TYPE mood RENAME VALUE 'low' TO 'lower'",
    "type renamed": "ALTER TYPE mood RENAME TO temper",
    "type moved": "ALTER TYPE temper SET SCHEMA elsewhere",
    "domain checked": "ALTER DOMAIN amounts ADD CHECK (VALUE > 0)",
    "domain renamed": "ALTER DOMAIN amounts RENAME TO quantities",
    "view renamed": "ALTER VIEW seen RENAME TO looked",
    "column of a view renamed": "ALTER VIEW looked RENAME COLUMN region TO area",
    "table moved": "ALTER TABLE events SET SCHEMA elsewhere; ALTER TABLE elsewhere.events SET SCHEMA public",
    "stream table indexed": "CREATE INDEX ON copied (region)",
    "stream table moved": "ALTER TABLE totals SET SCHEMA elsewhere",
    "stream table renamed": "ALTER TABLE elsewhere.totals RENAME TO sums",
    "truncated": "TRUNCATE orders",
    "schema renamed": "ALTER SCHEMA public RENAME TO shop",
}
REFUSED = {
    "read column dropped": "ALTER TABLE orders DROP COLUMN region",
    "read column retyped": "ALTER TABLE orders ALTER COLUMN region TYPE varchar(10)",
    "read column given another collation": 'ALTER TABLE orders ALTER COLUMN region TYPE text COLLATE "C"',
    "read column given another precision": "ALTER TABLE orders ALTER COLUMN price TYPE numeric(8, 2)",
    "table dropped": "DROP TABLE orders",
    "view dropped": "DROP VIEW seen",
    "column of a view dropped": "CREATE OR REPLACE VIEW seen AS SELECT id FROM orders",
    "function dropped": "DROP FUNCTION shown",
    "type dropped": "DROP TYPE mood",
}
ALL_OVER_ORDERS = {"copied", "moods", "totals", "titled", "viewed", "computed"}
# What is done, and which stream tables are reinitialized at the next tick. One follows the other in the same world.
NOTICED = {
    "read column renamed": ("ALTER TABLE orders RENAME COLUMN region TO area", ALL_OVER_ORDERS),
    "columns swapped": (
        "ALTER TABLE orders RENAME COLUMN area TO passing; ALTER TABLE orders RENAME COLUMN unread TO area;"
        " ALTER TABLE orders RENAME COLUMN passing TO unread",
        ALL_OVER_ORDERS,
    ),
    "generation expression dropped": ("ALTER TABLE orders ALTER COLUMN doubled DROP EXPRESSION", ALL_OVER_ORDERS),
    "all triggers disabled": ("ALTER TABLE orders DISABLE TRIGGER ALL", ALL_OVER_ORDERS),
    "capture trigger dropped": ("DROP TRIGGER pgtrickle_insert_{orders} ON orders", ALL_OVER_ORDERS),
    "capture function replaced": (
        "CREATE OR REPLACE FUNCTION pgtrickle_changes.capture_{orders}() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN RETURN NULL; END'",
        ALL_OVER_ORDERS,
    ),
    "change buffer dropped": ("DROP TABLE pgtrickle_changes.changes_{orders}", ALL_OVER_ORDERS),
    "function replaced": (
        "CREATE OR REPLACE FUNCTION shown(amount integer) RETURNS integer IMMUTABLE LANGUAGE sql"
        " AS 'SELECT amount + 2'",
        {"computed"},
    ),
    "function renamed": ("ALTER FUNCTION shown RENAME TO displayed", {"computed"}),
    "view replaced": ("CREATE OR REPLACE VIEW seen AS SELECT id, upper(area) AS region FROM orders", {"viewed"}),
    "column of a stream table renamed": ("ALTER TABLE totals RENAME COLUMN n TO number", {"onward"}),
    "partition attached": ("ALTER TABLE events ATTACH PARTITION loose FOR VALUES FROM (20) TO (30)", {"happened"}),
    "partition detached": ("ALTER TABLE events DETACH PARTITION events_high", {"happened"}),
    "partition detached and attached again": (
        "ALTER TABLE events DETACH PARTITION loose;"
        " ALTER TABLE events ATTACH PARTITION loose FOR VALUES FROM (20) TO (30)",
        {"happened"},
    ),
    "source converted to a partition": (
        "ALTER TABLE regions RENAME TO regions_rest;"
        " CREATE TABLE regions (name text, title text) PARTITION BY LIST (name);"
        " ALTER TABLE regions ATTACH PARTITION regions_rest DEFAULT",
        {"titled"},
    ),
    "unlogged": ("ALTER TABLE orders SET UNLOGGED", ALL_OVER_ORDERS),
    "logged again": ("ALTER TABLE orders SET LOGGED", ALL_OVER_ORDERS),
    "partition unlogged": ("ALTER TABLE loose SET UNLOGGED", {"happened"}),
    "partition logged again": ("ALTER TABLE loose SET LOGGED", {"happened"}),
    "unlogged partition attached": (
        "CREATE UNLOGGED TABLE events_new PARTITION OF events FOR VALUES FROM (30) TO (40)",
        {"happened"},
    ),
    "unlogged partition detached": ("ALTER TABLE events DETACH PARTITION events_new", {"happened"}),
}


def test_harmless_changes_leave_capture_and_refreshes_as_they_are(db: Database) -> None:
    with changing_world(db) as world:
        for names in (list(HARMLESS)[start : start + 4] for start in range(0, len(HARMLESS), 4)):
            moved = "schema renamed" in names
            for name in names:
                db.execute(HARMLESS[name])
            world.write("shop.orders" if moved else "orders", "shop.events" if moved else "events")
            assert set(world.tick().values()) <= {"DIFFERENTIAL", "NO_DATA"}, (names, world.actions, world.errors)
            assert world.actions["happened"] == world.actions["copied"] == "DIFFERENTIAL", names
            assert world.wrong() == [], names


@pytest.mark.parametrize("case", REFUSED)
def test_changes_that_would_break_a_defining_query_are_refused_by_postgresql(db: Database, case: str) -> None:
    db.execute("CREATE TYPE mood AS ENUM ('low', 'high')")
    db.execute("CREATE TABLE orders (id integer, region text, price numeric(6, 2), feeling mood)")
    db.execute("CREATE VIEW seen AS SELECT id, region FROM orders")
    db.execute("CREATE FUNCTION shown(amount integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT amount + 1'")
    query = "SELECT shown(o.id) AS id, o.price, o.feeling, s.region FROM orders AS o JOIN seen AS s ON s.id = o.id"
    db.execute("SELECT pgtrickle.create_stream_table('report', %s)", query)
    with pytest.raises(psycopg.Error) as refused:
        db.execute(REFUSED[case])
    assert refused.value.sqlstate in {"2BP01", "0A000", "42P16"}


def test_changes_that_capture_misses_are_noticed_and_no_writer_fails_meanwhile(db: Database) -> None:
    with changing_world(db) as world:
        orders = db.value("SELECT 'orders'::regclass::oid")
        for name, (change, expected) in NOTICED.items():
            db.execute(change.format(orders=orders))
            world.write("orders", "events")
            world.tick()
            reinitialized = {table for table, action in world.actions.items() if action == "REINITIALIZE"}
            assert (reinitialized, world.errors) == (expected, {}), name
            world.write("orders", "events")
            assert set(world.tick().values()) <= {"DIFFERENTIAL", "NO_DATA", "FULL"}, (
                name,
                world.actions,
                world.errors,
            )
            uncaptured = name in {"unlogged", "partition unlogged", "unlogged partition attached"}
            assert ("FULL" in world.actions.values()) == uncaptured, name
            assert world.wrong() == [], name


def test_a_loader_under_an_older_snapshot_survives_a_renamed_column(db: Database) -> None:
    with changing_world(db) as world:
        loader = db.connect(autocommit=False)
        loader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        loader.execute("SELECT count(*) FROM regions")
        db.execute("ALTER TABLE orders RENAME COLUMN region TO area")
        loader.execute("INSERT INTO orders (id) VALUES (100)")
        loader.commit()
        db.execute("ALTER TABLE orders RENAME COLUMN area TO region")
        assert world.tick()["copied"] == "REINITIALIZE"
        assert world.wrong() == []


@pytest.mark.parametrize("read", ["id, a, b", "id, a"], ids=["both read", "one read"])
@pytest.mark.parametrize("children", [False, True], ids=["plain", "with a child"])
def test_rows_written_while_columns_have_each_others_names_are_not_mixed_up(
    db: Database, read: str, children: bool
) -> None:
    swapping = "ALTER TABLE t RENAME a TO x; ALTER TABLE t RENAME b TO a; ALTER TABLE t RENAME x TO b"
    db.execute("CREATE TABLE t (id integer, a integer, b integer); INSERT INTO t VALUES (1, 10, 20)")
    if children:
        db.execute("CREATE TABLE child (c integer) INHERITS (t)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("copied", f"SELECT {read} FROM t")
        client.tick()
        db.execute(swapping)
        db.execute(f"INSERT INTO {'child' if children else 't'} (id, a, b) VALUES (2, 20, 10)")
        db.execute(swapping)
        assert client.tick()[0].action == "REINITIALIZE"
        assert set(db.execute("TABLE copied")) == set(db.execute(f"SELECT {read} FROM t"))
        db.execute("INSERT INTO t VALUES (3, 1, 2)")
        assert client.tick()[0].action == "DIFFERENTIAL"


@pytest.mark.parametrize("change", ["RENAME COLUMN note TO remark", "DROP COLUMN note", "ALTER COLUMN id TYPE bigint"])
@pytest.mark.parametrize("part", ["partition", "child"])
def test_a_detached_part_with_other_columns_can_be_written(db: Database, part: str, change: str) -> None:
    if part == "partition":
        db.execute("CREATE TABLE events (id integer, note text) PARTITION BY RANGE (id)")
        db.execute("CREATE TABLE part PARTITION OF events FOR VALUES FROM (0) TO (100)")
    else:
        db.execute("CREATE TABLE events (id integer, note text)")
        db.execute("CREATE TABLE part () INHERITS (events)")
    db.execute("SELECT pgtrickle.create_stream_table('happened', 'SELECT id, note FROM events')")
    db.execute("INSERT INTO part (id) VALUES (1)")
    db.execute(f"ALTER TABLE {'events DETACH PARTITION part' if part == 'partition' else 'part NO INHERIT events'}")
    db.execute(f"ALTER TABLE part {change}")
    for statement in ("INSERT INTO part (id) VALUES (2)", "UPDATE part SET id = 3 WHERE id = 2", "TRUNCATE part"):
        db.execute(statement)
    assert db.value("SELECT pgtrickle.capture_problem('events')") == "public.part was written after its columns changed"


NEW_PARTS = {
    "partition": (
        "CREATE TABLE events (id integer, day integer) PARTITION BY RANGE (id);"
        " CREATE TABLE deep PARTITION OF events FOR VALUES FROM (0) TO (100) PARTITION BY RANGE (id);"
        " CREATE TABLE low PARTITION OF deep FOR VALUES FROM (0) TO (10)",
        "ALTER TABLE deep ATTACH PARTITION part FOR VALUES FROM (10) TO (20)",
        "ALTER TABLE deep DETACH PARTITION part",
    ),
    "child": (
        "CREATE TABLE events (id integer, day integer); CREATE TABLE deep () INHERITS (events)",
        "ALTER TABLE part INHERIT deep",
        "ALTER TABLE part NO INHERIT deep",
    ),
}


@pytest.mark.parametrize("change", ["UPDATE events SET day = day + 1", "DELETE FROM events"])
@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
@pytest.mark.parametrize("part", NEW_PARTS)
def test_rows_of_a_part_that_came_and_went_before_a_tick_are_not_taken_in(
    db: Database, part: str, isolation: str, change: str
) -> None:
    tables, attach, detach = NEW_PARTS[part]
    db.execute(tables)
    db.execute("INSERT INTO events VALUES (1, 1)")
    db.execute("CREATE TABLE part (id integer, day integer)")
    db.execute("INSERT INTO part VALUES (11, 5)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("summed", "SELECT count(*) AS n, sum(day) AS days FROM events")
        client.tick()
        writer = db.connect(autocommit=False)
        writer.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
        writer.execute("UPDATE events SET day = day + 1")
        writer.commit()
        writer.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
        writer.execute(attach if isolation == "read committed" or part == "child" else "SELECT 1")
        if isolation != "read committed" and part == "partition":
            db.execute(attach)
        writer.execute(change)
        writer.commit()
        db.execute(detach)
        assert db.value("SELECT pgtrickle.capture_problem('events')").endswith("was changed together with a new part")
        client.tick()
        assert db.execute("TABLE summed") == db.execute("SELECT count(*), sum(day) FROM events")
        db.execute("INSERT INTO events VALUES (2, 2)")
        assert client.tick()[0].action == "DIFFERENTIAL"
        assert client.verify("summed").matches


def test_functions_that_postgresql_has_parsed_are_followed_and_others_are_not(db: Database) -> None:
    db.execute("CREATE TABLE t (a integer)")
    db.execute("CREATE FUNCTION inner_one(a integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT a'")
    db.execute("CREATE FUNCTION parsed(a integer) RETURNS integer IMMUTABLE LANGUAGE sql RETURN inner_one(a)")
    db.execute(
        "CREATE FUNCTION text(a integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql"
        " AS 'BEGIN RETURN public.inner_one(a); END'"
    )
    db.execute("SELECT pgtrickle.create_stream_table('through_parsed', 'SELECT parsed(a) AS a FROM t')")
    db.execute("SELECT pgtrickle.create_stream_table('through_text', 'SELECT public.text(a) AS a FROM t')")
    db.execute("GRANT EXECUTE ON FUNCTION inner_one TO PUBLIC")
    assert db.execute("SELECT * FROM pgtrickle_private.changed_definitions()") == []
    db.execute(
        "CREATE OR REPLACE FUNCTION inner_one(a integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT a + 1'"
    )
    assert db.execute(
        "SELECT t.pgt_name FROM pgtrickle_private.changed_definitions() AS c"
        " JOIN pgtrickle.pgt_stream_tables AS t ON t.pgt_id = c"
    ) == [("through_parsed",)]


def test_a_domain_gets_a_constraint_once_no_pending_change_violates_it(db: Database) -> None:
    with changing_world(db) as world:
        db.execute("INSERT INTO orders (id, amount) VALUES (500, -1)")
        db.execute("UPDATE orders SET amount = 1 WHERE id = 500")
        with pytest.raises(psycopg.errors.CheckViolation, match="changes_"):
            db.execute("ALTER DOMAIN amounts ADD CHECK (VALUE > 0)")
        world.tick()
        db.execute("ALTER DOMAIN amounts ADD CHECK (VALUE > 0)")
        assert world.wrong() == []
