"""Watermarks that are probably typos come with a warning that tells what to do, or are refused where one wants that."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.conftest import Database
from tests.sql.checks import refused

ADVANCE = "SELECT pgtrickle.advance_watermark(%s, %s)"
MARK = "SELECT watermark FROM pgtrickle.watermarks()"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Loader:
    """A session in Berlin, with what the server told it beside its answers."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.told: list[tuple[str, str, str]] = []
        connection.add_notice_handler(lambda d: self.told.append((d.severity, d.message_primary, d.message_hint)))

    def run(self, statement: str, *arguments: Any) -> list[tuple[str, str, str]]:
        """Run a statement and return what was told."""
        self.told.clear()
        self.connection.execute(statement.encode(), arguments or None)
        return self.told


@pytest.fixture
def loader(db: Database) -> Iterator[Loader]:
    db.execute("CREATE TABLE orders (id integer)")
    with db.connect(options="-c TimeZone=Europe/Berlin") as connection:
        yield Loader(connection)


def test_a_watermark_far_in_the_future_is_taken_with_a_warning_that_names_both_remedies(loader: Loader) -> None:
    now = datetime.now(UTC)
    assert loader.run(ADVANCE, "orders", now + timedelta(hours=23)) == []
    ((severity, sentence, hint),) = loader.run(ADVANCE, "orders", now + timedelta(hours=25))
    assert severity == "WARNING"
    assert "of public.orders is in the future, by more than 1 d" in sentence
    # Both remedies can be pasted.
    for remedy in hint.split("SELECT ")[1:]:
        loader.run(f"SELECT {remedy.partition(').')[0]})")
    assert loader.run(MARK) == []
    assert loader.run(ADVANCE, "orders", now + timedelta(days=20)) == []
    assert loader.run(ADVANCE, "orders", "infinity") == []


def test_where_the_option_says_so_it_is_refused_and_nothing_changes(db: Database, loader: Loader) -> None:
    loader.run("SELECT pgtrickle.set_watermark_checks('orders', '1 hour', 'error')")
    loader.run(ADVANCE, "orders", NOON)
    with refused("22023", "Nothing was changed", "doubtful_watermark", "in the future, by more than 1 h"):
        loader.run(ADVANCE, "orders", datetime.now(UTC) + timedelta(hours=2))
    with refused("22023", "Give it one: '2026-01-02 00:00:00+01'", "doubtful_watermark", "no time zone"):
        loader.run(ADVANCE, "orders", date(2026, 1, 2))
    assert db.execute(MARK) == [(NOON,)]
    loader.run("SELECT pgtrickle.set_watermark_checks('orders', NULL, 'error')")
    assert loader.run(ADVANCE, "orders", datetime(9000, 1, 1, tzinfo=UTC)) == []


@pytest.mark.parametrize("watermark", [datetime(2026, 1, 1, 12), date(2026, 1, 2)])
@pytest.mark.parametrize("source", ["%s", "%s::regclass"])
def test_a_moment_without_a_zone_is_taken_with_a_warning(loader: Loader, source: str, watermark: Any) -> None:
    ((_, sentence, hint),) = loader.run(f"SELECT pgtrickle.advance_watermark({source}, %s)", "orders", watermark)
    assert "has no time zone" in sentence and "by TimeZone Europe/Berlin" in sentence
    assert "+01'" in hint


@pytest.mark.parametrize(
    ("literal", "warned"),
    [
        ("'2026-01-01'", True),
        ("'2026-01-01 12:00'", True),
        ("timestamptz '2026-01-01T12:00:30.5'", True),
        ("watermark => '2026-01-01'", True),
        ("'2026-01-01 12:00Z'", False),
        ("'2026-01-01 12:00+01'", False),
        ("now()", False),
        ("'now'", False),
    ],
)
def test_a_literal_without_a_zone_is_noticed_too(loader: Loader, literal: str, warned: bool) -> None:
    told = loader.run(f"SELECT pgtrickle.advance_watermark('orders', {literal})")
    assert bool(told) is warned


def test_another_call_in_the_same_statement_is_not_suspected(loader: Loader) -> None:
    first, second = "advance_watermark('orders', '2026-01-01 12:00Z')", "advance_watermark('idle', '2026-01-01')"
    loader.connection.execute("CREATE TABLE idle (id integer)")
    assert len(loader.run(f"SELECT pgtrickle.{first}; SELECT pgtrickle.{second}")) == 1


def test_only_the_owner_decides_what_is_doubtful_and_takes_back(db: Database, loader: Loader) -> None:
    role, owner = db.create_role("loader_of_orders"), db.create_role("owner_of_orders")
    db.execute(f"ALTER TABLE orders OWNER TO {owner}; GRANT INSERT ON orders TO {role}")
    loader.run(ADVANCE, "orders", NOON)
    calls = {
        "say what is doubtful of": "set_watermark_checks('orders')",
        "take back a watermark of": "reset_watermark('orders', '2026-01-01 11:00Z')",
        "forget the watermarks of": "reset_watermark('orders')",
    }
    loader.run(f"SET ROLE {role}")
    for action, call in calls.items():
        with refused("42501", "Only", "insufficient_privilege", f"permission denied to {action} "):
            loader.run(f"SELECT pgtrickle.{call}")
    assert db.execute(MARK) == [(NOON,)]
    loader.run(f"SET ROLE {owner}")
    for call in list(calls.values())[:2]:
        loader.run(f"SELECT pgtrickle.{call}")
    assert db.execute("SELECT withdrawn_by FROM pgtrickle.withdrawn_watermarks()") == [(owner,)]


@pytest.mark.parametrize(
    ("call", "sqlstate", "message"),
    [
        ("reset_watermark('orders', '2026-01-01 12:00Z')", "22023", "which is not after"),
        ("reset_watermark('orders', '2026-01-01 13:00Z')", "22023", "which is not after"),
        ("reset_watermark('orders', NULL)", "22004", "watermark must not be NULL"),
        ("reset_batch('orders', 1)", "42804", "goes by event time, not by batch numbers"),
        ("reset_watermark('idle', '2026-01-01 12:00Z')", "55000", "never advanced"),
        ("set_watermark_checks('orders', '-1 day')", "22023", "is not a valid max_ahead"),
        ("set_watermark_checks('orders', '1 day', 'maybe')", "22023", "is not a valid on_doubt"),
        ("set_watermark_checks('orders', '1 day', NULL)", "22004", "on_doubt must not be NULL"),
    ],
)
def test_what_makes_no_sense_is_refused(db: Database, loader: Loader, call: str, sqlstate: str, message: str) -> None:
    db.execute("CREATE TABLE idle (id integer)")
    loader.run(ADVANCE, "orders", NOON)
    with refused(sqlstate, message=message):
        loader.run(f"SELECT pgtrickle.{call}")
    assert db.execute(MARK) == [(NOON,)]


def test_batches_are_taken_back_too_and_their_own_version_stays(db: Database, loader: Loader) -> None:
    for batch in (1, 2, 9_000_000):
        loader.run("SELECT pgtrickle.advance_batch('orders', %s)", batch)
    kept = "SELECT (cut).xid::text FROM pgtrickle.pgt_watermarks"
    at_two = "SELECT (cut).xid::text FROM pgtrickle.pgt_watermark_history WHERE batch = 2"
    loader.run("SELECT pgtrickle.reset_batch('orders', 2)")
    assert db.value(kept) == db.value(at_two)
    assert db.execute("SELECT batch, version, lowered_to_batch FROM pgtrickle.withdrawn_watermarks()") == [
        (9_000_000, 3, 2)
    ]
    loader.run("SELECT pgtrickle.advance_batch('orders', 3)")
    assert db.execute("SELECT batch FROM pgtrickle.watermark_history('orders')") == [(3,), (2,), (1,)]
