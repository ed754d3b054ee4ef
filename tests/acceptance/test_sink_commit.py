"""What the sink does with a batch that its tasks have staged, without Spark: one transaction, and no false promise."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest

from pytrickle.errors import InvalidArgument, StagingFailed
from pytrickle.streaming.sink.commit import commit_batch
from pytrickle.streaming.sink.stage import Part, Target
from pytrickle.watermarks import event_time
from tests.conftest import Database

LATER = timedelta(minutes=30)


@pytest.fixture
def orders(db: Database) -> Database:
    db.execute("CREATE TABLE orders (id int, at timestamptz)")
    return db


def target(db: Database, table: str = "orders", user: str = "postgres") -> Target:
    return Target(db.dsn.replace("postgres@", f"{user}@"), table, "files", ("id", "at"))


def staged(to: Target, *rows: tuple[int, Any]) -> Part:
    """Stage rows as a task does."""
    with psycopg.connect(to.dsn, autocommit=True) as task:
        create = "SELECT pgtrickle.create_sink_staging(%s, 'files', ARRAY['id', 'at'])"
        ((staging,),) = task.execute(create, (to.table,)).fetchall()
        task.execute("SET TimeZone TO 'UTC'")
        for row in rows:
            task.execute(f"INSERT INTO pgtrickle_sinks.{staging} VALUES (%s, %s)", row)
    return Part(staging, len(rows), "a query")


def commit(to: Target, batch: int, *parts: Part) -> bool:
    return commit_batch(to, batch, parts, event_time(timedelta(0)), "at")


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, 2, hour, minute, tzinfo=UTC)


def ids(db: Database) -> list[int]:
    return [number for (number,) in db.execute("SELECT id FROM orders ORDER BY id")]


def watermark(db: Database) -> Any:
    return next(
        (at for (at,) in db.execute("SELECT watermark FROM pgtrickle.watermarks() WHERE source ~ 'orders'")), None
    )


def test_a_loader_with_no_more_than_insert_loads_beside_sources_that_it_may_not_see(orders: Database) -> None:
    orders.create_role("loader")
    orders.execute("GRANT INSERT ON orders TO loader")
    orders.execute("CREATE SCHEMA secret CREATE TABLE events (id int)")
    orders.execute("SELECT pgtrickle.advance_watermark('secret.events', now())")
    plain = target(orders, user="loader")
    assert commit(plain, 0, staged(plain, (1, at(12))))
    assert commit(plain, 1, staged(plain, (2, at(11))))
    assert (ids(orders), watermark(orders)) == ([1, 2], at(12))


def test_a_batch_that_comes_again_is_left_out_however_its_tasks_divide_it(orders: Database) -> None:
    to = target(orders)
    assert commit(to, 0, staged(to, (1, at(1)), (2, at(2))), staged(to, (3, None)))
    assert not commit(to, 0, staged(to, (3, None)), staged(to, (2, at(2))), staged(to, (1, at(1))))
    assert commit(to, 1), "a batch may be empty"
    assert not commit(to, 1)
    assert ids(orders) == [1, 2, 3]


@pytest.mark.parametrize(
    "again", [[(1, at(1)), (2, at(2)), (3, at(3))], [(1, at(1))], [(1, at(1)), (3, at(2))], [(1, at(2)), (2, at(1))]]
)
def test_a_batch_that_comes_again_with_other_rows_is_refused(orders: Database, again: list[tuple[int, Any]]) -> None:
    to = target(orders)
    commit(to, 0, staged(to, (1, at(1)), (2, at(2))))
    with pytest.raises(InvalidArgument, match=f"comes again with other rows: {len(again)} in place of 2") as refused:
        commit(to, 0, staged(to, *again))
    assert (ids(orders), watermark(orders)) == ([1, 2], at(2))
    assert refused.value.hint is not None
    remedy = "SELECT pgtrickle.drop_sink('public.orders', 'files')"
    assert remedy in refused.value.hint
    orders.execute("DELETE FROM orders")
    orders.execute(remedy)
    assert commit(to, 0, staged(to, *again))
    assert len(ids(orders)) == len(again)


def test_rows_of_types_without_a_hash_are_compared_by_their_text(orders: Database) -> None:
    orders.execute("CREATE TABLE notes (id int, at json)")
    to = target(orders, "notes")
    assert commit_batch(to, 0, [staged(to, (1, '{"a": 1}'))], event_time(), None)
    assert not commit_batch(to, 0, [staged(to, (1, '{"a": 1}'))], event_time(), None)
    with pytest.raises(InvalidArgument, match="other rows"):
        commit_batch(to, 0, [staged(to, (1, '{"a": 2}'))], event_time(), None)


def test_lost_rows_are_noticed_also_in_a_batch_that_comes_again(orders: Database) -> None:
    to = target(orders)
    commit(to, 0, staged(to, (1, at(1))))
    for batch in (0, 1):
        part = staged(to, (1, at(1)))
        orders.execute(f"TRUNCATE pgtrickle_sinks.{part.staging}")
        with pytest.raises(StagingFailed, match="Of 1 staged rows for orders 0 are left"):
            commit(to, batch, part)


@pytest.mark.parametrize(
    ("kind", "first", "asserted"),
    [
        ("timestamp", datetime(2026, 3, 2, 12), at(11)),
        ("date", date(2026, 3, 2), at(23) - timedelta(microseconds=1)),
    ],
)
def test_event_times_are_placed_as_the_source_declares_them(
    orders: Database, kind: str, first: date, asserted: datetime
) -> None:
    orders.execute(f"ALTER TABLE orders ALTER at TYPE {kind}")
    orders.execute("SELECT pgtrickle.set_event_time('orders', 'at', time_zone => 'Europe/Berlin')")
    to = target(orders)
    commit(to, 0, staged(to, (1, first)))
    assert watermark(orders) == asserted
    commit(to, 1, staged(to, (2, first + LATER)))
    assert orders.execute("SELECT * FROM pgtrickle.late_rows('orders')") == []


def test_without_a_declaration_a_moment_without_a_zone_is_in_utc(orders: Database) -> None:
    orders.execute("ALTER TABLE orders ALTER at TYPE timestamp")
    to = target(orders)
    commit(to, 0, staged(to, (1, datetime(2026, 3, 2, 12))))
    assert watermark(orders) == at(12)


def test_what_hinders_clearing_up_does_not_fail_a_batch_that_is_committed(orders: Database) -> None:
    to = target(orders)
    part = staged(to, (1, at(1)))
    orders.execute("ALTER FUNCTION pgtrickle.drop_sink_staging RENAME TO hidden")
    assert commit(to, 0, part)
    orders.execute("ALTER FUNCTION pgtrickle.hidden RENAME TO drop_sink_staging")
    assert orders.value("SELECT pgtrickle.drop_sink_staging('orders', 'files')") == 1
    assert not commit(to, 0, staged(to, (1, at(1))))
