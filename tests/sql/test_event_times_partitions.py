"""Event times of partitioned tables: whatever a load names, and wherever a statement moves its rows."""

import pytest

from tests.conftest import Database
from tests.sql.late import PARTITIONED, advance, at, declared, ids, ledger, set_event_time


def test_partitions_and_their_parent_are_judged_whatever_a_load_names(db: Database) -> None:
    declared(db, PARTITIONED, too_late="2 hours")
    db.execute("INSERT INTO events VALUES (1, %s), (2, %s), (3, %s)", at("11:00"), at("12:30"), at("09:00"))
    db.execute("INSERT INTO early (id, at) VALUES (4, %s), (5, %s)", at("11:00"), at("09:00"))
    assert ledger(db) == [(1, "loaded"), (3, "kept_out"), (4, "loaded"), (5, "kept_out")]
    with db.connect() as loader, loader.transaction():
        loader.execute("INSERT INTO events VALUES (6, %s)", (at("13:00"),))
        loader.execute("UPDATE events SET at = at - interval '1 day' WHERE id = 2")
        loader.execute("UPDATE events SET at = at - interval '1 hour' WHERE id = 2")
    db.execute("UPDATE early SET at = at - interval '5 minutes' WHERE id = 4")
    assert ledger(db)[1:4] == [(2, "loaded"), (2, "loaded"), (3, "kept_out")], "an update is no load: no limit holds it"
    assert [number for number, _ in ledger(db)].count(4) == 2
    assert db.value("SELECT pgtrickle.replay_late_rows('events')") == 2
    assert ids(db) == [1, 2, 3, 4, 5, 6]
    assert ids(db, "early") == [1, 2, 3, 4, 5]


BY_NOTE = (
    "CREATE TABLE events (id integer, at timestamptz, note text) PARTITION BY LIST (note);\n"
    "CREATE TABLE events_a PARTITION OF events FOR VALUES IN ('a');\n"
    "CREATE TABLE events_b PARTITION OF events FOR VALUES IN ('b') PARTITION BY RANGE (id);\n"
    "CREATE TABLE events_b1 PARTITION OF events_b FOR VALUES FROM (0) TO (10)"
)
COMING = "INSERT INTO events VALUES (9, '2026-03-01 01:00+00', 'a')"
MOVING = "UPDATE events SET note = CASE note WHEN 'a' THEN 'b' ELSE 'a' END WHERE id < 9"


@pytest.mark.parametrize(
    "statement",
    [
        "MERGE INTO events AS e USING (VALUES (9), (1), (2)) AS n(id) ON e.id = n.id"
        " WHEN MATCHED THEN UPDATE SET note = CASE note WHEN 'a' THEN 'b' ELSE 'a' END"
        " WHEN NOT MATCHED THEN INSERT VALUES (n.id, '2026-03-01 01:00+00', 'a')",
        f"WITH coming AS ({COMING}) {MOVING}",
        f"WITH moving AS ({MOVING}) {COMING}",
        f"WITH coming AS ({COMING}), moving AS ({MOVING}) SELECT",
        f"WITH moving AS ({MOVING}), coming AS ({COMING}) SELECT",
        f"WITH coming AS ({COMING} RETURNING id) {MOVING} AND (SELECT count(*) FROM coming) < 9",
        f"WITH moving AS ({MOVING} RETURNING id) INSERT INTO events"
        " SELECT 9, '2026-03-01 01:00+00', 'a' FROM moving LIMIT 1",
        f"WITH moving AS ({MOVING.replace('events', 'events_b')}) {COMING}".replace("ELSE 'a'", "ELSE 'b'"),
    ],
)
def test_no_statement_loses_a_row_that_it_moves_to_another_partition(db: Database, statement: str) -> None:
    declared(db, BY_NOTE, watermark=None, too_late="1 hour")
    db.execute("INSERT INTO events VALUES (1, %s, 'a'), (2, %s, 'b')", at("01:00"), at("02:00"))
    advance(db, "12:00")
    db.execute(statement)
    assert set(ids(db)) >= {1, 2}
    assert [number for number, status in ledger(db) if status == "kept_out"] in ([], [9])
    assert len(ids(db)) + db.value("SELECT count(*) FROM pgtrickle.late_rows('events', 'kept_out')") == 3
    db.execute("INSERT INTO events VALUES (8, %s, 'a') ON CONFLICT DO NOTHING", at("01:00"))
    assert 8 not in ids(db), "the limit is there again"


def test_rows_that_merge_updates_after_it_inserted_some_are_judged(db: Database) -> None:
    declared(db, BY_NOTE, watermark=None)
    db.execute("INSERT INTO events VALUES (1, %s, 'a')", at("13:00"))
    advance(db, "12:00")
    db.execute("SET enable_hashjoin = off; SET enable_mergejoin = off")
    db.execute(
        "MERGE INTO events AS e USING (VALUES (9, %s::timestamptz), (1, %s)) AS s (id, at) ON e.id = s.id"
        " WHEN MATCHED THEN UPDATE SET at = s.at WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.at, 'a')",
        at("13:00"),
        at("01:00"),
    )
    assert ledger(db) == [(1, "loaded")]


def test_rows_that_come_before_the_first_move_are_still_kept_out(db: Database) -> None:
    declared(db, BY_NOTE, watermark=None, too_late="1 hour")
    db.execute("INSERT INTO events VALUES (1, %s, 'a')", at("01:00"))
    advance(db, "12:00")
    db.execute(f"WITH coming AS ({COMING} RETURNING id) {MOVING} AND (SELECT count(*) FROM coming) < 9")
    assert (ids(db), ledger(db)) == ([1], [(9, "kept_out")])


def test_a_trigger_that_drops_a_moving_row_does_not_shift_the_others(db: Database) -> None:
    declared(db, PARTITIONED)
    for number, clock in enumerate(("12:10", "12:20", "12:30", "12:40"), start=1):
        db.execute("INSERT INTO events VALUES (%s, %s)", number, at(clock))
    db.execute(
        "CREATE FUNCTION drop_second() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN IF NEW.id = 2 THEN RETURN NULL; END IF; RETURN NEW; END'"
    )
    db.execute("CREATE TRIGGER dropping BEFORE INSERT ON early FOR EACH ROW EXECUTE FUNCTION drop_second()")
    advance(db, "13:00")
    db.execute("UPDATE events SET at = CASE WHEN id > 2 THEN at ELSE %s END", at("10:00"))
    assert ids(db) == [1, 3, 4]
    assert ledger(db) == [(1, "loaded")]


@pytest.mark.parametrize("source", ["later", "child"])
def test_a_partition_or_child_is_judged_by_itself(db: Database, source: str) -> None:
    for statement in PARTITIONED.split(";\n"):
        db.execute(statement)
    db.execute("CREATE TABLE parent (id integer, at timestamptz); CREATE TABLE child () INHERITS (parent)")
    set_event_time(db, source, too_late="1 hour")
    advance(db, "16:00", source)
    parent = "events" if source == "later" else "parent"
    db.execute(f"INSERT INTO {source} (id, at) VALUES (1, %s), (2, %s)", at("15:30"), at("14:00"))
    if source == "later":
        db.execute(
            "INSERT INTO events (id, at) VALUES (3, %s), (4, %s), (5, %s)", at("15:30"), at("14:00"), at("11:00")
        )
        db.execute("UPDATE events SET at = %s WHERE id = 5", at("15:30"))
        assert [number for number, _ in ledger(db, source=source)] == [1, 2, 3, 4, 5]
    db.execute(f"UPDATE {parent} SET at = at - interval '1 minute' WHERE id = 1")
    assert [number for number, _ in ledger(db, source=source)].count(1) == 2
    assert {1, 2} - set(ids(db, source)) == {2}
