"""Which watermark is in force where transactions meet: that which the statement sees when it ends."""

import threading

import psycopg
import pytest

from tests.conftest import Database
from tests.sql.late import INSERT, advance, at, declared, ledger


def test_the_watermark_in_force_is_that_when_the_statement_ends(db: Database) -> None:
    """Loader A advances to 13:00, loader B brings a row of 12:30: late if B sees the advance, and only then."""
    declared(db)
    first, second = db.connect(autocommit=False), db.connect(autocommit=False)
    first.execute("SELECT pgtrickle.advance_watermark('events', %s)", (at("13:00"),))
    second.execute(INSERT, (1, at("12:30")))
    first.commit()
    second.execute(INSERT, (2, at("12:30")))
    second.commit()
    assert ledger(db) == [(2, "loaded")], "row 1 came before anybody could see the promise"


def test_a_row_that_came_first_is_not_late_although_it_commits_last(db: Database) -> None:
    declared(db)
    loader = db.connect(autocommit=False)
    loader.execute(INSERT, (1, at("12:30")))
    advance(db, "13:00")
    loader.commit()
    assert ledger(db) == []


def test_a_rolled_back_promise_makes_nothing_late(db: Database) -> None:
    declared(db)
    loader = db.connect(autocommit=False)
    loader.execute("SELECT pgtrickle.advance_watermark('events', %s)", (at("13:00"),))
    db.execute(INSERT, 1, at("12:30"))
    loader.rollback()
    db.execute(INSERT, 2, at("12:30"))
    assert ledger(db) == []


def test_a_statement_that_waited_for_the_promise_is_judged_by_it(db: Database) -> None:
    declared(db, "CREATE TABLE events (id integer PRIMARY KEY, at timestamptz)")
    first, second = db.connect(autocommit=False), db.connect()
    first.execute(INSERT, (1, at("12:59")))
    first.execute("SELECT pgtrickle.advance_watermark('events', %s)", (at("13:00"),))
    statement = "INSERT INTO events VALUES (1, %s), (2, %s) ON CONFLICT DO NOTHING"
    waiting = threading.Thread(target=lambda: second.execute(statement, (at("12:30"), at("12:30"))))
    waiting.start()
    while not db.value("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %s", second.info.backend_pid):
        pass
    first.commit()
    waiting.join(timeout=30)
    assert ledger(db) == [(2, "loaded")]


def test_under_an_older_snapshot_the_older_watermark_is_in_force(db: Database) -> None:
    declared(db)
    loader = db.connect(autocommit=False)
    loader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    loader.execute("SELECT 1")
    advance(db, "13:00")
    loader.execute(INSERT, (1, at("12:30")))
    loader.execute(INSERT, (2, at("11:30")))
    loader.commit()
    assert ledger(db) == [(2, "loaded")]


def test_within_a_transaction_what_follows_its_own_advance_is_late(db: Database) -> None:
    declared(db)
    with db.connect() as loader, loader.transaction():
        loader.execute(INSERT, (1, at("12:30")))
        loader.execute("SELECT pgtrickle.advance_watermark('events', %s)", (at("13:00"),))
        loader.execute(INSERT, (2, at("12:30")))
    db.execute(
        "WITH new AS (INSERT INTO events VALUES (3, %s) RETURNING id) "
        "SELECT pgtrickle.advance_watermark('events', %s) FROM new",
        at("13:30"),
        at("14:00"),
    )
    assert ledger(db) == [(2, "loaded"), (3, "loaded")], "neither is covered by its cut"


def test_what_is_rolled_back_leaves_no_entry(db: Database) -> None:
    declared(db)
    with db.connect() as loader, loader.transaction():
        with pytest.raises(psycopg.errors.DivisionByZero), loader.transaction():
            loader.execute(INSERT, (1, at("11:00")))
            loader.execute("SELECT 1 / 0")
        loader.execute(INSERT, (2, at("11:00")))
    assert ledger(db) == [(2, "loaded")]
