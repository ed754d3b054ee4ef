"""Clean-up keeps what a first load may need: an advance that is still open cannot be seen, but it has its cut."""

import random
from typing import Any

import pytest
from psycopg import Connection, IsolationLevel

from tests.conftest import Database
from tests.repeats import first
from tests.sql.checks import Rows, buffer_of, create

CLEAN = "SELECT pgtrickle.clean_change_buffers()"
FRONTIER = "UPDATE pgtrickle.pgt_dependencies SET frontier = pgtrickle.current_cut() WHERE pgt_id = %s"
FILLED = """
UPDATE pgtrickle.pgt_dependencies SET frontier = (SELECT cut FROM pgtrickle.pgt_watermarks) WHERE pgt_id = %s
"""
# The table as of the cut of its newest advance.
AT_THE_CUT = """
SELECT a FROM (
    SELECT a, 1 AS weight FROM t
    UNION ALL
    SELECT b.a, -b.pgt_weight FROM {buffer} AS b, pgtrickle.pgt_watermarks AS w
    WHERE NOT pgtrickle.covers(w.cut, b.pgt_xid, b.pgt_pos)) AS z
GROUP BY a HAVING sum(weight) <> 0 ORDER BY a
"""
FAST, HELD = 1, 2


@pytest.fixture
def awaited(db: Database) -> Database:
    """A table with one stream table that shows everything, and one that waits for the first advance."""
    db.execute("CREATE TABLE t (a integer)")
    db.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['t'])")
    assert create(db, "SELECT a FROM t", "fast", watermark_gating="none") == FAST
    assert create(db, "SELECT a FROM t", "held", watermark_gating="hold_back", require_watermark=True) == HELD
    db.execute(FRONTIER, FAST)
    return db


def insert(connection: Connection[Any] | Database, value: int) -> None:
    connection.execute(f"INSERT INTO t VALUES ({value})")


def advance(connection: Connection[Any] | Database, minute: int = 0) -> None:
    connection.execute(f"SELECT pgtrickle.advance_watermark('t', '2026-01-01 12:{minute:02}Z')")


def refresh_and_clean(db: Database) -> int:
    db.execute(FRONTIER, FAST)
    deleted = db.value(CLEAN)
    assert isinstance(deleted, int)
    return deleted


def pending(db: Database) -> list[int]:
    return [a for (a,) in db.execute(f"SELECT a FROM {buffer_of(db, 't')} ORDER BY a")]


def decision(db: Database) -> str:
    found = db.value("SELECT decision || ': ' || reason FROM pgtrickle.gating_decision(%s)", HELD)
    assert isinstance(found, str)
    return found


def at_the_cut(db: Database) -> Rows:
    return db.execute(AT_THE_CUT.format(buffer=buffer_of(db, "t")))


@pytest.mark.parametrize(
    "isolation", [IsolationLevel.READ_COMMITTED, IsolationLevel.SERIALIZABLE], ids=lambda level: level.name
)
def test_what_an_open_advance_does_not_cover_is_kept(awaited: Database, isolation: IsolationLevel) -> None:
    loader = awaited.connect(autocommit=False)
    loader.isolation_level = isolation
    insert(loader, 1)
    advance(loader)
    insert(awaited, 2)
    assert refresh_and_clean(awaited) == 0
    loader.commit()
    assert decision(awaited).startswith("run: g: agrees at 2026-01-01 12:00:00+00")
    assert at_the_cut(awaited) == [(1,)]
    awaited.execute(FILLED, HELD)
    assert refresh_and_clean(awaited) == 1
    assert pending(awaited) == [2]


def test_what_was_open_when_an_advance_took_its_cut_is_kept_though_it_is_older(awaited: Database) -> None:
    writer, loader = awaited.connect(autocommit=False), awaited.connect(autocommit=False)
    insert(writer, 1)
    insert(loader, 2)
    advance(loader)
    writer.commit()
    assert refresh_and_clean(awaited) == 0
    loader.commit()
    assert decision(awaited).startswith("run: ")
    assert at_the_cut(awaited) == [(2,)]


def test_a_later_advance_that_is_open_is_kept_where_the_first_cannot_be_read(db: Database) -> None:
    """It does not matter whether the watermark was advanced before its changes are captured."""
    db.execute("CREATE TABLE t (a integer)")
    db.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['t'])")
    advance(db)
    create(db, "SELECT a FROM t", "fast", watermark_gating="none")
    create(db, "SELECT a FROM t", "held", watermark_gating="hold_back", require_watermark=True)
    loader = db.connect(autocommit=False)
    advance(loader, 1)
    insert(db, 1)
    assert refresh_and_clean(db) == 0
    loader.commit()
    assert decision(db).startswith("run: g: agrees at 2026-01-01 12:01:00+00")
    assert at_the_cut(db) == []


def test_while_it_waits_the_buffer_is_emptied_once_who_wrote_before_has_ended(awaited: Database) -> None:
    insert(awaited, 1)
    assert refresh_and_clean(awaited) == 1
    writer = awaited.connect(autocommit=False)
    writer.execute("CREATE TEMPORARY TABLE other AS SELECT 1")
    insert(awaited, 2)
    assert refresh_and_clean(awaited) == 0
    writer.rollback()
    assert awaited.value(CLEAN) == 1
    assert pending(awaited) == []


ENDS = {
    "filled": FRONTIER.replace("%s", str(HELD)),
    "gated": "SELECT pgtrickle.alter_stream_table('held', watermark_gating => 'gate')",
}


@pytest.mark.parametrize("end", ENDS)
def test_once_nothing_waits_the_buffer_is_emptied_whoever_is_open(awaited: Database, end: str) -> None:
    insert(awaited, 1)
    advance(awaited)
    loader = awaited.connect(autocommit=False)
    insert(loader, 2)
    advance(loader, 1)
    insert(awaited, 3)
    assert refresh_and_clean(awaited) == 1, "the first advance is kept readable, whatever is open"
    assert pending(awaited) == [3]
    awaited.execute(ENDS[end])
    assert refresh_and_clean(awaited) == 1
    assert pending(awaited) == []
    loader.commit()
    assert pending(awaited) == [2]


def test_what_holds_back_behind_another_does_not_stop_its_clean_up(awaited: Database) -> None:
    """A table that is created later cannot read the advances before it, but a later one covers them all."""
    advance(awaited)
    awaited.execute(FILLED, HELD)
    awaited.execute("ALTER TABLE t ADD COLUMN b integer")
    create(awaited, "SELECT a, b FROM t", "later", watermark_gating="hold_back", require_watermark=True)
    insert(awaited, 1)
    advance(awaited, 1)
    insert(awaited, 2)
    awaited.execute(FILLED, HELD)
    loader = awaited.connect(autocommit=False)
    advance(loader, 2)
    assert refresh_and_clean(awaited) == 1
    assert pending(awaited) == [2]


def test_the_reason_is_true_where_changes_that_a_cut_needs_are_gone(awaited: Database) -> None:
    """Nobody can tell that a transaction which wrote nothing yet has an old snapshot."""
    loader = awaited.connect(autocommit=False)
    loader.isolation_level = IsolationLevel.REPEATABLE_READ
    loader.execute("SELECT")
    insert(awaited, 1)
    assert refresh_and_clean(awaited) == 1
    insert(loader, 2)
    advance(loader)
    loader.commit()
    why = "g: public.t has not advanced since changes beyond its newest advance were deleted"
    assert decision(awaited) == f"waiting: {why}"
    advance(awaited, 1)
    assert decision(awaited).startswith("run: g: agrees at 2026-01-01 12:01:00+00")


def open_loader(db: Database, numbers: random.Random) -> Connection[Any]:
    loader = db.connect(autocommit=False)
    loader.isolation_level = numbers.choice([IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ])
    return loader


def first_advance(db: Database, numbers: random.Random) -> Rows | None:
    """Let loaders work side by side until one commits an advance; return what it saw then, or nothing if none did."""
    loaders = [open_loader(db, numbers) for _ in range(4)]
    advanced: dict[Connection[Any], Rows] = {}
    for step in range(80):
        loader = numbers.choice(loaders)
        match numbers.choice(["insert", "insert", "insert", "clean", "advance", "commit", "rollback"]):
            case "insert":
                insert(numbers.choice([loader, db]), step)
            case "clean":
                refresh_and_clean(db)
            case "advance" if not advanced:
                # Another advance would wait for this one.
                advance(loader)
                advanced[loader] = loader.execute("SELECT a FROM t ORDER BY a").fetchall()
            case "rollback":
                loader.rollback()
                advanced.pop(loader, None)
            case "commit":
                loader.commit()
                if loader in advanced:
                    return advanced[loader]
    return None


@pytest.mark.parametrize("seed", first(3, range(20)))
def test_a_first_advance_can_be_read_in_any_order_of_commits(awaited: Database, seed: int) -> None:
    seen = first_advance(awaited, random.Random(seed))
    refresh_and_clean(awaited)
    assert decision(awaited).startswith("waiting" if seen is None else "run")
    assert seen is None or at_the_cut(awaited) == seen
