"""Capture of partitioned tables, partitions, and tables with children."""

import pytest

from tests.conftest import Database
from tests.sql.checks import assert_replays, logged, remember, replays_each
from tests.sql.partitions import COLUMNS, PARTITIONED, build

CHILDREN = """
CREATE TABLE events (id integer, day integer, note text);
CREATE TABLE events_low (more text) INHERITS (events);
CREATE TABLE events_high (other text) INHERITS (events_low);
INSERT INTO events SELECT i, i, 'n' || i FROM generate_series(1, 9) AS i;
INSERT INTO events_low SELECT i, i, 'n' || i FROM generate_series(10, 19) AS i;
INSERT INTO events_high SELECT i, i, 'n' || i FROM generate_series(20, 29) AS i;
"""
CHANGES = {
    "insert through the parent": "INSERT INTO events SELECT i, i, 'new' FROM generate_series(1, 9) AS i",
    "insert into a leaf": "INSERT INTO events_low (id, day) VALUES (5, 5)",
    "insert into a leaf with another column order": "INSERT INTO events_high (id, day, note) VALUES (15, 15, 'x')",
    "update through the parent": "UPDATE events SET note = 'changed'",
    "update a leaf": "UPDATE events_high SET note = 'changed'",
    "delete through the parent": "DELETE FROM events WHERE id % 2 = 0",
    "delete from a leaf": "DELETE FROM events_low WHERE id > 3",
    "truncate all": "TRUNCATE events",
    "truncate a leaf": "TRUNCATE events_low",
    "move a row": "UPDATE events SET day = 12 WHERE day = 5",
}


@pytest.mark.parametrize("script", [PARTITIONED, CHILDREN], ids=["partitions", "children"])
@pytest.mark.parametrize("source", ["events", "events_low", "events_high"])
def test_changes_replay_whatever_they_are_addressed_to(db: Database, script: str, source: str) -> None:
    build(db, script, source)
    assert replays_each(db, source, COLUMNS, CHANGES) == {}


@pytest.mark.parametrize("source", ["events", "events_deep", "events_deep_1"])
def test_changes_below_a_sub_partitioned_table_replay(db: Database, source: str) -> None:
    build(db, PARTITIONED, source)
    db.execute("INSERT INTO events VALUES (1, 25), (2, 5)")
    db.execute("INSERT INTO events_deep VALUES (103, 26)")
    db.execute("INSERT INTO events_deep_1 VALUES (4, 27)")
    db.execute("UPDATE events SET day = day - 20 WHERE id = 103")
    db.execute("DELETE FROM events_deep WHERE day = 21")
    assert_replays(db, source, COLUMNS)
    db.execute("TRUNCATE events_deep")
    assert_replays(db, source, COLUMNS)


def test_partition_and_parent_are_captured_side_by_side(db: Database) -> None:
    build(db, PARTITIONED, "events")
    db.execute("SELECT pgtrickle.create_stream_table('low', 'SELECT id FROM events_low')")
    db.execute("INSERT INTO events VALUES (100, 1)")
    db.execute("INSERT INTO events_low VALUES (101, 2)")
    db.execute("UPDATE events SET day = 15 WHERE id = 100")
    assert logged(db, "events_low", "id") == [(1, 101)]
    assert logged(db, "events", "id, day") == [(1, 100, 15), (1, 101, 2)]


def test_replica_role_does_not_bypass_row_triggers(db: Database) -> None:
    build(db, PARTITIONED, "events_deep")
    connection = db.connect()
    connection.execute("SET session_replication_role = replica")
    connection.execute("INSERT INTO events VALUES (100, 25)")
    connection.execute("DELETE FROM events_deep_1 WHERE id = 22")
    assert logged(db, "events_deep", "id") == [(-1, 22), (1, 100)]


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE events_new PARTITION OF events FOR VALUES FROM (100) TO (110)",
        "ALTER TABLE events DETACH PARTITION events_low",
        "DROP TABLE events_low",
    ],
)
def test_attached_and_detached_partitions_are_noticed_and_repaired(db: Database, change: str) -> None:
    build(db, PARTITIONED, "events")
    assert db.value("SELECT pgtrickle.capture_problem('events')") is None
    db.execute(change)
    assert db.value("SELECT pgtrickle.capture_problem('events')") == "partitions or children were attached or detached"
    db.execute("SELECT pgtrickle.repair_capture('events')")
    assert db.value("SELECT pgtrickle.capture_problem('events')") is None
    db.execute("DROP TABLE remembered")
    remember(db, "events")
    db.execute("INSERT INTO events VALUES (1, 12)")
    if "NEW" in change.upper():
        db.execute("INSERT INTO events_new VALUES (2, 105)")
    assert_replays(db, "events", COLUMNS)


def test_a_source_that_becomes_a_partition_is_noticed(db: Database) -> None:
    db.execute("CREATE TABLE t (id integer, day integer)")
    db.execute("SELECT pgtrickle.create_stream_table('copied', 'SELECT id FROM t')")
    db.execute("CREATE TABLE above (id integer, day integer) PARTITION BY RANGE (day)")
    db.execute("ALTER TABLE above ATTACH PARTITION t DEFAULT")
    assert db.value("SELECT pgtrickle.capture_problem('t')") == "it needs row triggers now"
    db.execute("SELECT pgtrickle.repair_capture('t')")
    db.execute("INSERT INTO above VALUES (1, 1)")
    assert logged(db, "t", "id") == [(1, 1)]


def test_a_subscribed_table_gets_row_triggers(db: Database) -> None:
    db.execute("CREATE TABLE t (id integer)")
    db.execute(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=nowhere' PUBLICATION p WITH (connect = false, slot_name = NONE)"
    )
    db.execute(
        "INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate) SELECT oid, "
        "'t'::regclass, 'r' FROM pg_subscription WHERE subname = 's'"
    )
    db.execute("SELECT pgtrickle.create_stream_table('copied', 'SELECT id FROM t')")
    assert db.value("SELECT capture_mode FROM pgtrickle.pgt_change_tracking") == "row"
    db.execute("INSERT INTO t VALUES (1), (2)")
    db.execute("UPDATE t SET id = 3 WHERE id = 2")
    assert logged(db, "t", "id") == [(1, 1), (1, 3)]
    db.execute("DROP SUBSCRIPTION s")


@pytest.mark.parametrize(
    ("script", "source", "came", "went"),
    [
        (PARTITIONED, "events", "CREATE TABLE n PARTITION OF events FOR VALUES FROM (50) TO (60)", "DROP TABLE n"),
        (PARTITIONED, "events", "CREATE TABLE n PARTITION OF events_deep DEFAULT", "DROP TABLE n"),
        (PARTITIONED, "events_deep", "CREATE TABLE n PARTITION OF events_deep DEFAULT", "DROP TABLE n"),
        (CHILDREN, "events", "CREATE TABLE n () INHERITS (events_low)", "ALTER TABLE n NO INHERIT events_low"),
    ],
    ids=["partition", "partition below", "partition of a partition", "child"],
)
def test_what_comes_and_goes_before_anybody_looks_is_noticed(
    db: Database, script: str, source: str, came: str, went: str
) -> None:
    build(db, script, source)
    db.execute(came)
    day = 55 if "50" in came else 35
    db.execute(f"INSERT INTO {'n' if script is CHILDREN else 'events'} VALUES (100, {day}, 'x'), (101, {day}, 'y')")
    db.execute("UPDATE events SET note = 'z' WHERE id = 100")
    db.execute(went)
    assert "new" in db.value("SELECT pgtrickle.capture_problem(%s::regclass)", source)
    db.execute("SELECT pgtrickle.repair_capture(%s::regclass)", source)
    assert db.value("SELECT pgtrickle.capture_problem(%s::regclass)", source) is None
