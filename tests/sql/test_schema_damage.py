"""Changes that a stream table cannot follow: it fails and says why, the others go on, and no loader is concerned."""

from __future__ import annotations

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.security.roles import owner_of_a_catalog
from tests.sql.schema_changes import changing_world

# What is done, which stream table fails and how it puts it, and what puts it right.
MENDED = {
    "function made volatile": (
        "ALTER FUNCTION shown VOLATILE",
        ("computed", "calls the volatile function"),
        "ALTER FUNCTION shown IMMUTABLE",
    ),
    "view made volatile": (
        "CREATE OR REPLACE VIEW seen AS SELECT id, region || random() AS region FROM orders",
        ("viewed", "calls the volatile function"),
        "CREATE OR REPLACE VIEW seen AS SELECT id, region FROM orders",
    ),
    "view made to read what reads it": (
        "CREATE OR REPLACE VIEW seen AS SELECT id, region FROM viewed",
        ("viewed", "would read itself"),
        "CREATE OR REPLACE VIEW seen AS SELECT id, region FROM orders",
    ),
    "column added to a stream table": (
        "ALTER TABLE copied ADD COLUMN more text",
        ("copied", "no longer has the columns"),
        "ALTER TABLE copied DROP COLUMN more",
    ),
    "column of a stream table retyped": (
        "ALTER TABLE copied ALTER COLUMN region TYPE varchar(99)",
        ("copied", "no longer has the columns"),
        "ALTER TABLE copied ALTER COLUMN region TYPE text",
    ),
    "constraint added to a stream table": (
        "ALTER TABLE copied ADD CONSTRAINT few CHECK (amount < 5) NOT VALID",
        ("copied", "violates check constraint"),
        "ALTER TABLE copied DROP CONSTRAINT few",
    ),
}
CASCADED = {
    "column of a stream table dropped": ("ALTER TABLE copied DROP COLUMN doubled", {"copied"}),
    "stream table dropped": ("DROP TABLE happened", set()),
    "view dropped": ("DROP VIEW seen CASCADE", {"viewed"}),
    "function dropped": ("DROP FUNCTION shown CASCADE", {"computed"}),
    "read column dropped": ("ALTER TABLE orders DROP COLUMN price CASCADE", {"totals"}),
}


def test_what_cannot_be_followed_stops_one_stream_table_until_it_is_put_right(db: Database) -> None:
    with changing_world(db) as world:
        for name, (damage, (table, message), remedy) in MENDED.items():
            db.execute(damage)
            world.write("orders", "events")
            actions = world.tick()
            assert list(world.errors) == [table] and message in world.errors[table], (name, world.errors)
            assert set(actions.values()) - {actions[table]} == {"DIFFERENTIAL"}, (name, actions)
            db.execute(remedy)
            for _ in range(2):
                world.tick()
            assert world.errors == {}, name
            assert world.wrong() == [], name


def test_what_was_dropped_by_cascade_concerns_its_own_stream_tables_only(db: Database) -> None:
    with changing_world(db) as world:
        broken: set[str] = set()
        for name, (damage, lost) in CASCADED.items():
            db.execute(damage)
            broken |= lost
            for _ in range(2):
                world.write("orders", "events")
                db.execute("UPDATE pgtrickle.pgt_stream_tables SET retry_at = NULL")
                world.tick()
                assert set(world.errors) == broken, (name, world.errors)
        for table in sorted(broken, key=lambda table: table == "totals"):
            db.execute("SELECT pgtrickle.drop_stream_table(%s, cascade => true)", table)
        world.write("orders", "events")
        world.tick()
        assert (world.errors, world.wrong()) == ({}, [])


def test_a_dropped_source_leaves_stream_tables_that_say_so_and_can_be_dropped(db: Database) -> None:
    with changing_world(db) as world:
        db.execute("DROP TABLE events CASCADE")
        world.write("orders")
        assert world.tick()["copied"] == "DIFFERENTIAL"
        assert "cannot be refreshed any more" in world.errors["happened"]
        db.execute("SELECT pgtrickle.drop_stream_table('happened')")
        world.tick()
        assert (world.errors, world.wrong()) == ({}, [])


@pytest.mark.parametrize("statement", ["INSERT INTO notes VALUES (2, 'b')", "TRUNCATE notes"])
def test_policies_that_hide_rows_from_the_refresher_make_it_fail_not_lie(db: Database, statement: str) -> None:
    own = owner_of_a_catalog(db, owner := "notes_owner")
    own.execute("CREATE TABLE notes (id integer, body text)")
    own.execute("INSERT INTO notes VALUES (1, 'a')")
    own.execute("SELECT pgtrickle.create_stream_table('kept', 'SELECT id, count(*) AS n FROM notes GROUP BY id')")
    own.execute("ALTER TABLE notes ENABLE ROW LEVEL SECURITY")
    own.execute("ALTER TABLE notes FORCE ROW LEVEL SECURITY")
    own.execute("CREATE POLICY none ON notes USING (false) WITH CHECK (true)")
    own.execute(statement)
    with local_client(f"{db.dsn}?user={owner}") as (client, _):
        (result,) = client.tick()
        assert result.action == "FAILED" and "row-level security" in (result.error or "")
        own.execute("ALTER TABLE notes NO FORCE ROW LEVEL SECURITY")
        assert client.tick()[0].error is None
        assert client.verify("kept").matches


def test_a_stream_table_is_known_by_the_name_that_its_table_got(db: Database) -> None:
    db.execute("CREATE SCHEMA sales; CREATE TABLE sales.t (id int)")
    for name in ("one", "two"):
        db.execute("SELECT pgtrickle.create_stream_table(%s, 'SELECT id FROM sales.t')", f"sales.{name}")
    db.execute("SELECT pgtrickle.create_stream_table('above', 'SELECT count(*) AS n FROM sales.one')")
    known = "SELECT stream_table FROM pgtrickle.pgt_status() ORDER BY (SELECT to_regclass(stream_table)::oid)"
    with local_client(db.dsn) as (client, _):
        client.tick()
        for change, names in (
            ("ALTER SCHEMA sales RENAME TO shop", ["shop.one", "shop.two"]),
            ("ALTER TABLE shop.one RENAME TO third", ["shop.third", "shop.two"]),
            ("ALTER TABLE shop.third SET SCHEMA public", ["public.third", "shop.two"]),
            (
                "ALTER TABLE third SET SCHEMA shop; ALTER TABLE shop.third RENAME TO x;"
                "ALTER TABLE shop.two RENAME TO third; ALTER TABLE shop.x RENAME TO two",
                ["shop.two", "shop.third"],
            ),
        ):
            db.execute(change)
            assert not [result.error for result in client.tick() if result.error]
            assert [name for (name,) in db.execute(known)] == [*names, "public.above"]
            reads = "SELECT source_name FROM pgtrickle.pgt_dependencies WHERE source_type = 'STREAM_TABLE'"
            assert db.value(reads) == names[0]
            views = "SELECT view_relid::text FROM pgtrickle.pgt_stream_tables ORDER BY pgt_id LIMIT 1"
            assert names[0] in db.value(views)
    db.execute("CREATE SCHEMA sales")
    assert db.value("SELECT pgtrickle.create_stream_table('sales.one', 'SELECT id FROM shop.t')")
