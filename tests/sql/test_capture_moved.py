"""Capture of rows that move between partitions, and of what MERGE does to partitioned tables."""

import pytest

from tests.conftest import Database
from tests.repeats import on_both_servers
from tests.sql.checks import assert_replays, logged
from tests.sql.partitions import COLUMNS, PARTITIONED, build


def test_a_row_that_moves_is_one_row_less_and_one_more(db: Database) -> None:
    build(db, PARTITIONED, "events")
    db.execute("UPDATE events SET day = 12 WHERE id = 5")
    assert logged(db, "events", "id, day") == [(-1, 5, 5), (1, 5, 12)]


MERGE = "MERGE INTO {target} AS e USING generate_series(3, 99) AS s (id) ON s.id = e.id AND e.day < 30 "
MOVE, CHANGE = "WHEN MATCHED THEN UPDATE SET day = (e.day + 7) % 30 ", "WHEN MATCHED THEN UPDATE SET note = 'm' "
INSERT = "WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1, 'n') "
DELETE = "WHEN MATCHED AND e.id % 4 = 0 THEN DELETE "
GAP = "events{} had rows moved between its partitions by MERGE"


@on_both_servers
@pytest.mark.parametrize("actions", [MOVE, INSERT + MOVE, DELETE + MOVE])
def test_rows_that_merge_moves_unseen_are_a_gap(every_db: Database, actions: str) -> None:
    build(every_db, PARTITIONED, "events")
    every_db.execute(MERGE.format(target="events") + actions)
    assert every_db.value("SELECT pgtrickle.capture_problem('events')") == "public." + GAP.format("")


@on_both_servers
def test_changes_of_partitioned_tables_that_capture_sees_are_no_gap(every_db: Database) -> None:
    build(every_db, PARTITIONED, "events")
    update, upsert = "UPDATE events SET day = (day + 7) % 30", "INSERT INTO events VALUES (1, 1) ON CONFLICT DO NOTHING"
    seen = [CHANGE, INSERT + CHANGE, DELETE + CHANGE, INSERT + DELETE + CHANGE, INSERT + DELETE + MOVE]
    for change in (*(MERGE.format(target="events") + each for each in seen), update, upsert, "DELETE FROM events_deep"):
        every_db.execute(change)
        assert_replays(every_db, "events", COLUMNS)
        assert every_db.value("SELECT pgtrickle.capture_problem('events')") is None
        every_db.execute("INSERT INTO events SELECT i, i, 'n' || i FROM generate_series(1, 29) AS i")


# Rows are merged in the order in which they are given.
IN_ORDER = "SET enable_hashjoin = off; SET enable_mergejoin = off"
MIXED = """
MERGE INTO events AS e USING (VALUES (101, 5), (5, 6), (102, 15), (15, 16), (25, 26)) AS s (id, day) ON e.id = s.id
WHEN MATCHED AND s.id = 25 THEN {matched}
WHEN MATCHED THEN UPDATE SET day = s.day, note = 'm'
WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.day, 'n')
"""


@on_both_servers
@pytest.mark.parametrize("matched", ["DO NOTHING", "DELETE"])
def test_rows_that_merge_updates_after_it_inserted_some_are_captured(every_db: Database, matched: str) -> None:
    build(every_db, PARTITIONED, "events")
    every_db.execute(IN_ORDER)
    every_db.execute(MIXED.format(matched=matched))
    assert_replays(every_db, "events", COLUMNS)
    assert every_db.value("SELECT pgtrickle.capture_problem('events')") is None
    assert every_db.value("SELECT count(*) FROM events WHERE note = 'm'") == 2


# A row becomes like one that stays; a row leaves that is like one that is changed.
BECOMES_A_TWIN = """
MERGE INTO events AS e USING (VALUES (4), (5), (12)) AS s (id) ON e.id = s.id
WHEN MATCHED AND s.id = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET id = 12, day = 12, note = 'n12'
"""
LEAVES_A_TWIN = """
MERGE INTO events AS e USING (
    SELECT ctid, tableoid AS part, row_number() OVER (ORDER BY id, ctid) AS n FROM events WHERE note = 'twin') AS s
ON e.ctid = s.ctid AND e.tableoid = s.part
WHEN MATCHED AND s.n = 1 THEN UPDATE SET day = 12 WHEN MATCHED THEN UPDATE SET day = 4
WHEN NOT MATCHED THEN INSERT VALUES (1, 1, 'n')
"""


@on_both_servers
@pytest.mark.parametrize("statement", [BECOMES_A_TWIN, LEAVES_A_TWIN], ids=["becomes a twin", "leaves a twin"])
def test_rows_that_merge_moves_among_rows_like_them_are_a_gap(every_db: Database, statement: str) -> None:
    build(every_db, PARTITIONED, "events")
    every_db.execute("INSERT INTO events VALUES (5, 5, 'twin'), (5, 5, 'twin')")
    every_db.execute(IN_ORDER)
    every_db.execute(statement)
    assert every_db.value("SELECT pgtrickle.capture_problem('events')") == "public." + GAP.format("")


DELETING = """
CREATE FUNCTION delete_twins() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN DELETE FROM events WHERE note = 'twin'; RETURN NULL; END$$;
CREATE TRIGGER deleting AFTER UPDATE ON events FOR EACH ROW WHEN (NEW.note = 'm') EXECUTE FUNCTION delete_twins()
"""


@on_both_servers
def test_rows_like_those_that_merge_moves_may_be_deleted_by_a_trigger(every_db: Database) -> None:
    build(every_db, PARTITIONED, "events")
    every_db.execute("INSERT INTO events VALUES (5, 5, 'twin'), (5, 5, 'twin')")
    every_db.execute(DELETING)
    every_db.execute(IN_ORDER)
    change = LEAVES_A_TWIN.replace("'twin'", "'twin' OR id = 6").replace("SET day = 12", "SET day = 12, note = 'moved'")
    every_db.execute(change.replace("MATCHED THEN UPDATE SET day = 4", "MATCHED AND n = 3 THEN UPDATE SET note = 'm'"))
    assert every_db.execute("SELECT id, day FROM events WHERE note IN ('twin', 'moved')") == [(5, 12)]
    assert every_db.value("SELECT pgtrickle.capture_problem('events')") == "public." + GAP.format("")


BESIDE = (
    "WITH moving AS (UPDATE events SET day = day + 20 WHERE id IN (5, 6) RETURNING id) "
    "MERGE INTO events AS e USING generate_series(3, 4) AS s (id) ON s.id = e.id "
    "AND (SELECT count(*) FROM moving) < 9 WHEN MATCHED THEN UPDATE SET day = e.day + 20"
)
INTO_A_PARTITION = (
    "WITH coming AS (INSERT INTO events_deep VALUES (50, 22)) "
    "MERGE INTO events AS e USING generate_series(3, 4) AS s (id) ON s.id = e.id "
    "WHEN MATCHED AND e.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET day = e.day + 20"
)


@on_both_servers
@pytest.mark.parametrize(
    "statements",
    [
        [BESIDE],
        [INTO_A_PARTITION],
        [f"DO $$BEGIN {BESIDE}; END$$"],
        [f"CREATE FUNCTION move() RETURNS void LANGUAGE sql AS $$ {BESIDE}; SELECT $$", "SELECT move()"],
        [f"PREPARE moving AS {BESIDE}", "EXECUTE moving"],
    ],
)
def test_rows_that_merge_moves_beside_another_command_are_a_gap(every_db: Database, statements: list[str]) -> None:
    build(every_db, PARTITIONED, "events")
    for statement in statements:
        every_db.execute(statement)
    assert every_db.value("SELECT pgtrickle.capture_problem('events')") == "public." + GAP.format("")


@pytest.mark.parametrize(
    "statements",
    [
        ["WITH s AS (SELECT 5 AS id) UPDATE events SET day = day + 20 FROM s WHERE s.id = events.id"],
        [
            "CREATE FUNCTION move() RETURNS void LANGUAGE sql AS 'UPDATE events SET day = day + 20 WHERE id < 9'",
            "SELECT move()",
        ],
        ["PREPARE moving AS UPDATE events SET day = day + 20 WHERE id < 9", "EXECUTE moving"],
    ],
)
def test_rows_that_update_moves_are_no_gap_wherever_it_is_written(db: Database, statements: list[str]) -> None:
    build(db, PARTITIONED, "events")
    for statement in statements:
        db.execute(statement)
    assert db.value("SELECT pgtrickle.capture_problem('events')") is None
    assert_replays(db, "events", COLUMNS)


def test_rows_that_merge_moves_below_a_partition_are_a_gap_of_what_reads_all(db: Database) -> None:
    build(db, PARTITIONED + "CREATE TABLE events_deep_2 PARTITION OF events_deep DEFAULT;\n", "events")
    db.execute("SELECT pgtrickle.create_stream_table('deep', 'SELECT id, day FROM events_deep')")
    db.execute(MERGE.format(target="events_deep") + "WHEN MATCHED THEN UPDATE SET day = day + 10")
    assert db.value("SELECT pgtrickle.capture_problem('events')") == "public." + GAP.format("_deep")
    assert db.value("SELECT pgtrickle.capture_problem('events_deep')") is None
    assert logged(db, "events_deep", "id, day")[-1] == (1, 29, 39)


def test_a_move_that_is_rolled_back_is_no_gap(db: Database) -> None:
    build(db, PARTITIONED, "events")
    with db.connect() as connection, connection.transaction():
        with connection.transaction(force_rollback=True):
            connection.execute((MERGE.format(target="events") + MOVE).encode())
        connection.execute("UPDATE events SET day = 12 WHERE id = 5")
    assert db.value("SELECT pgtrickle.capture_problem('events')") is None
    assert logged(db, "events", "id, day") == [(-1, 5, 5), (1, 5, 12)]


def test_settings_that_are_reset_while_rows_are_updated_stop_no_later_statement(db: Database) -> None:
    build(db, PARTITIONED, "events")
    db.execute(
        "CREATE FUNCTION reset(i integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RESET ALL; RETURN i + 1; END $$"
    )
    with db.connect(autocommit=False) as loader:
        for change in ("id = reset(id)", "id = id + 1", "day = (day + 7) % 30"):
            loader.execute(f"UPDATE events SET {change}")
    assert_replays(db, "events", COLUMNS)
    assert db.value("SELECT pgtrickle.capture_problem('events')") is None
