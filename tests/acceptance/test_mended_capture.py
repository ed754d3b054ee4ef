"""Loads that damage capture themselves, each of them: what is held back follows from one watermark to the next."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import pytrickle
from tests.conftest import Database
from tests.repeats import on_both_servers

# Day {0} of a table with a partition for each day.
LOADS = {
    "a new partition": "CREATE TABLE s{0} PARTITION OF s FOR VALUES IN ({0}); INSERT INTO s VALUES ({0}, {0})",
    "an attached partition": "CREATE TABLE s{0} (id int, day int); INSERT INTO s{0} VALUES ({0}, {0}); "
    "ALTER TABLE s ATTACH PARTITION s{0} FOR VALUES IN ({0})",
    "a partition less": "DROP TABLE gone{0}; INSERT INTO s VALUES ({0}, 0)",
    "moved rows": "MERGE INTO s USING (SELECT 1) AS o ON day = -{0} WHEN MATCHED THEN UPDATE SET day = 0",
    "disabled triggers": "ALTER TABLE s DISABLE TRIGGER USER; INSERT INTO s VALUES ({0}, 0); "
    "ALTER TABLE s ENABLE TRIGGER USER",
}
DAYS = (2, 3, 4)
BUFFER = "SELECT buffer::regclass::oid FROM pgtrickle.pgt_change_tracking"
ADVANCE = "SELECT pgtrickle.advance_watermark('s', '2026-01-0{}Z')"


@pytest.fixture
def client(every_db: Database) -> Iterator[pytrickle.Client]:
    every_db.execute("CREATE TABLE s (id int, day int) PARTITION BY LIST (day)")
    every_db.execute("CREATE TABLE s_rest PARTITION OF s DEFAULT")
    for day in DAYS:
        every_db.execute(f"CREATE TABLE gone{day} PARTITION OF s FOR VALUES IN (-{day})")
        every_db.execute(f"INSERT INTO s VALUES ({day}, -{day})")
    every_db.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['s'])")
    with pytrickle.connect(every_db.dsn, engine="postgres") as client:
        client.create_stream_table("held", "SELECT id, day FROM s", watermark_gating="hold_back")
        every_db.execute(ADVANCE.format(1))
        client.tick()
        yield client


def rows(session: Any, table: str) -> list[tuple[int, int]]:
    return sorted(session.execute(f"SELECT id, day FROM {table}").fetchall())


def load(db: Database, statements: str, day: int, level: str = "READ COMMITTED") -> list[tuple[int, int]]:
    """Load a day, advance, and write a row beyond that; return what there was at the advance."""
    with db.connect(autocommit=False) as loader:
        loader.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        loader.execute(statements.format(day))
        loader.execute(ADVANCE.format(day))
        there = rows(loader, "s")
        loader.execute(f"INSERT INTO s VALUES (100, 100 + {day})")
    db.execute(f"INSERT INTO s VALUES (200, 200 + {day})")
    return there


def shown(db: Database, client: pytrickle.Client) -> tuple[list[tuple[int, int]], datetime | None]:
    (result,) = client.tick()
    assert result.error is None
    return rows(db.connect(), "held"), result.effective_watermark


@on_both_servers
@pytest.mark.parametrize("statements", LOADS.values(), ids=LOADS)
def test_what_is_held_back_follows_a_load_that_damages_capture(
    every_db: Database, client: pytrickle.Client, statements: str
) -> None:
    for day in DAYS:
        there = load(every_db, statements, day)
        assert shown(every_db, client) == (there, datetime(2026, 1, day, tzinfo=UTC))
    assert client.verify("held").matches


def test_a_reader_delays_no_loader_for_long_and_what_is_held_back_waits(
    every_db: Database, client: pytrickle.Client
) -> None:
    before = rows(every_db.connect(), "held")
    with every_db.connect(autocommit=False) as reader:
        reader.execute("SELECT count(*) FROM s")
        load(every_db, LOADS["disabled triggers"], 2)
    assert shown(every_db, client)[0] == before
    there = load(every_db, LOADS["disabled triggers"], 3)
    assert shown(every_db, client) == (there, datetime(2026, 1, 3, tzinfo=UTC))


@on_both_servers
def test_a_statement_that_capture_cannot_follow_keeps_nobody_from_reading_and_writing(
    every_db: Database, client: pytrickle.Client
) -> None:
    buffer = every_db.value(BUFFER)
    with every_db.connect(autocommit=False) as loader, every_db.connect(autocommit=False) as reader:
        loader.execute(LOADS["moved rows"].format(2))
        loader.execute(ADVANCE.format(2))
        there = rows(loader, "s")
        reader.execute("SET lock_timeout = '1s'")
        reader.execute("SELECT count(*) FROM s")
        every_db.execute("SET lock_timeout = '1s'; INSERT INTO s VALUES (50, 50)")
        assert every_db.value("SELECT count(*) FROM pgtrickle.change_buffer_sizes()") == 1
        loader.commit()
        assert shown(every_db, client) == (there, datetime(2026, 1, 2, tzinfo=UTC))
    assert every_db.value(BUFFER) == buffer
    every_db.execute(ADVANCE.format(3))
    assert shown(every_db, client) == (rows(every_db.connect(), "s"), datetime(2026, 1, 3, tzinfo=UTC))
    assert client.verify("held").matches


MOVE = "MERGE INTO s USING (SELECT 1) AS o ON day = -{} WHEN MATCHED THEN UPDATE SET day = 0"


@pytest.mark.parametrize("together", [True, False], ids=["in its transaction", "in another one"])
def test_no_cut_is_read_from_which_changes_were_missed(
    every_db: Database, client: pytrickle.Client, together: bool
) -> None:
    before = rows(every_db.connect(), "held")
    with every_db.connect(autocommit=False) as loader:
        loader.execute(MOVE.format(2))
        loader.execute(ADVANCE.format(2))
        if not together:
            loader.commit()
        loader.execute(MOVE.format(3))
    assert shown(every_db, client)[0] == before
    every_db.execute(ADVANCE.format(3))
    assert shown(every_db, client) == (rows(every_db.connect(), "s"), datetime(2026, 1, 3, tzinfo=UTC))


def test_gaps_of_two_transactions_are_behind_the_next_cut_alone(every_db: Database, client: pytrickle.Client) -> None:
    before = rows(every_db.connect(), "held")
    with every_db.connect(autocommit=False) as first, every_db.connect(autocommit=False) as second:
        first.execute(MOVE.format(2))
        second.execute(MOVE.format(3))
        second.execute(ADVANCE.format(2))
        second.commit()
        first.commit()
    assert shown(every_db, client)[0] == before
    every_db.execute(ADVANCE.format(3))
    assert shown(every_db, client) == (rows(every_db.connect(), "s"), datetime(2026, 1, 3, tzinfo=UTC))


OLDER = {
    "a truncated table": ("CREATE TABLE s (id int, day int)", "TRUNCATE s"),
    "rows that move": (
        "CREATE TABLE s (id int, day int) PARTITION BY LIST (day); CREATE TABLE s1 PARTITION OF s FOR VALUES IN (1);"
        " CREATE TABLE s_rest PARTITION OF s DEFAULT",
        "MERGE INTO s USING (SELECT 1) AS o ON id = {} WHEN MATCHED THEN UPDATE SET day = 2",
    ),
}


@on_both_servers
@pytest.mark.parametrize(("table", "statement"), OLDER.values(), ids=OLDER)
def test_a_gap_is_noted_though_an_older_snapshot_shows_one_that_was_settled(
    every_db: Database, table: str, statement: str
) -> None:
    every_db.execute(f"{table}; INSERT INTO s VALUES (1, 1), (2, 1), (3, 1)")
    with pytrickle.connect(every_db.dsn, engine="postgres") as client, every_db.connect(autocommit=False) as writer:
        client.create_stream_table("shown", "SELECT id, day FROM s")
        client.tick()
        with every_db.connect(autocommit=False) as first:
            first.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            first.execute(statement.format(1))
        writer.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        writer.execute("SELECT FROM pg_class LIMIT 1")
        every_db.execute("INSERT INTO s VALUES (9, 1)")
        assert client.tick()[0].action == "REINITIALIZE"
        writer.execute(statement.format(2))
        writer.commit()
        assert client.tick()[0].action == "REINITIALIZE"
        assert rows(every_db.connect(), "shown") == rows(every_db.connect(), "s")


def test_who_may_not_lock_a_table_does_not_lock_it_by_advancing(every_db: Database, client: pytrickle.Client) -> None:
    every_db.create_role("loader")
    every_db.execute("GRANT INSERT, SELECT ON s TO loader")
    every_db.execute(LOADS["a new partition"].format(2))
    buffer = every_db.value(BUFFER)
    with every_db.connect(autocommit=False, user="loader") as loader:
        loader.execute(ADVANCE.format(2))
        locks = "SELECT count(*) FROM pg_locks WHERE relation = 's2'::regclass AND mode ~ 'Exclusive'"
        assert every_db.value(locks) == 0
    assert every_db.value(BUFFER) == buffer
    assert every_db.value("SELECT pgtrickle.capture_problem('s')") is not None


@pytest.mark.parametrize("statements", ["a new partition", "moved rows"])
@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_under_an_older_snapshot_capture_is_left_to_the_next_tick(
    every_db: Database, client: pytrickle.Client, level: str, statements: str
) -> None:
    before, buffer = rows(every_db.connect(), "held"), every_db.value(BUFFER)
    load(every_db, LOADS[statements], 2, level)
    assert every_db.value(BUFFER) == buffer
    assert every_db.value("SELECT pgtrickle.capture_problem('s')") is not None
    assert shown(every_db, client)[0] == before


def test_a_load_that_is_rolled_back_leaves_capture_as_it_was(every_db: Database, client: pytrickle.Client) -> None:
    buffer = every_db.value(BUFFER)
    with every_db.connect(autocommit=False) as loader:
        loader.execute(LOADS["a new partition"].format(2))
        loader.execute(ADVANCE.format(2))
        loader.rollback()
    assert every_db.value(BUFFER) == buffer
    every_db.execute("INSERT INTO s VALUES (5, 5)")
    every_db.execute(ADVANCE.format(3))
    (result,) = client.tick()
    assert result.action == "DIFFERENTIAL"
    assert client.verify("held").matches


QUERY = "SELECT day, count(*) AS n FROM s GROUP BY day"
TRIGGERS = "SELECT array_agg(oid ORDER BY oid) FROM pg_trigger WHERE tgrelid IN ('s'::regclass, 's_rest'::regclass)"
CHANGED = "CREATE TABLE s20 PARTITION OF s FOR VALUES IN (20); ALTER TABLE s DETACH PARTITION gone3"


@on_both_servers
def test_partitions_that_come_and_go_leave_the_others_alone(every_db: Database, client: pytrickle.Client) -> None:
    client.create_stream_table("counted", QUERY)
    client.tick()
    buffer, triggers = every_db.value(BUFFER), every_db.value(TRIGGERS)
    every_db.execute(CHANGED)
    with every_db.connect(autocommit=False) as other:
        other.execute("INSERT INTO s_rest VALUES (7, 7); SELECT count(*) FROM s")
        for day in (4, 5):
            every_db.execute("INSERT INTO s VALUES (20, 20); INSERT INTO s20 VALUES (21, 20); UPDATE s SET id = id + 1")
            every_db.execute("INSERT INTO gone3 VALUES (99, -3); DELETE FROM gone3 WHERE id = 3")
            every_db.execute(ADVANCE.format(day))
            results = {result.stream_table: result.action for result in client.tick()}
            assert set(results.values()) == {"REINITIALIZE" if day == 4 else "DIFFERENTIAL"}
            for query, name in (("SELECT id, day FROM s", "held"), (QUERY, "counted")):
                assert every_db.execute(f"TABLE {name} ORDER BY 1, 2") == every_db.execute(f"{query} ORDER BY 1, 2")
        other.commit()
    # What the other wrote, not knowing of the new partition yet, was missed.
    client.tick()
    every_db.execute(ADVANCE.format(6))
    client.tick()
    assert every_db.execute("TABLE counted ORDER BY 1") == every_db.execute(f"{QUERY} ORDER BY 1")
    assert (every_db.value(BUFFER), every_db.value(TRIGGERS)) == (buffer, triggers)
    assert every_db.value("SELECT count(*) FROM pg_trigger WHERE tgrelid = 'gone3'::regclass") == 0
    assert client.verify("held").matches
