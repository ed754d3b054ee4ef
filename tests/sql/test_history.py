"""Old history goes, but for what a later decision may ask for."""

from datetime import UTC

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client


@pytest.fixture
def held(db: Database) -> Database:
    """Two sources in a group and a stream table over one of them that holds back."""
    db.execute("CREATE TABLE orders (id integer)")
    db.execute("CREATE TABLE lines (id integer)")
    db.execute("SELECT pgtrickle.create_watermark_group('pipeline', ARRAY['orders', 'lines'])")
    db.execute(
        "SELECT pgtrickle.create_stream_table('report', 'SELECT id FROM orders', watermark_gating => 'hold_back',"
        " require_watermark => true)"
    )
    return db


def load(db: Database, source: str, hour: int) -> None:
    with db.connect() as loader, loader.transaction():
        loader.execute(f"INSERT INTO {source} VALUES ({hour})")
        loader.execute(f"SELECT pgtrickle.advance_watermark('{source}', '2026-01-01 {hour:02}:00+00')")


def age(db: Database) -> None:
    db.execute("UPDATE pgtrickle.pgt_watermark_history SET advanced_at = advanced_at - interval '60 days'")
    db.execute("UPDATE pgtrickle.pgt_refresh_history SET started_at = started_at - interval '60 days'")


def hours(db: Database, source: str) -> list[int]:
    query = "SELECT extract(hour FROM watermark AT TIME ZONE 'UTC')::int FROM pgtrickle.pgt_watermark_history"
    return [hour for (hour,) in db.execute(f"{query} WHERE source_relid = '{source}'::regclass ORDER BY 1")]


def test_advances_that_a_held_back_table_may_still_need_are_kept(held: Database) -> None:
    with local_client(held.dsn) as (client, _):
        load(held, "orders", 1)
        load(held, "lines", 1)
        client.tick()
        load(held, "orders", 2)
        load(held, "lines", 2)
        client.tick()
        for hour in (3, 4, 5):
            load(held, "orders", hour)
        age(held)
        held.execute("SELECT pgtrickle.trim_history('30 days')")
        assert (hours(held, "orders"), hours(held, "lines")) == ([2, 3, 4, 5], [2])
        load(held, "lines", 4)
        (result,) = client.tick()
        assert result.effective_watermark is not None and result.effective_watermark.astimezone(UTC).hour == 4
        assert {row for (row,) in held.execute("SELECT id FROM report")} == {1, 2, 3, 4}


def test_advances_of_a_source_that_only_gates_wait_for_the_tables_held_back_on_it(held: Database) -> None:
    with local_client(held.dsn) as (client, _):
        for hour in (1, 2, 3, 4):
            load(held, "lines", hour)
        load(held, "orders", 1)
        client.tick()
        age(held)
        held.execute("SELECT pgtrickle.trim_history('30 days')")
        assert hours(held, "lines") == [1, 2, 3, 4]
        load(held, "orders", 3)
        client.tick()
        held.execute("SELECT pgtrickle.trim_history('30 days')")
        assert hours(held, "lines") == [3, 4]
        assert {row for (row,) in held.execute("SELECT id FROM report")} == {1, 3}


def test_nothing_is_trimmed_before_a_held_back_table_is_filled(held: Database) -> None:
    for hour in (1, 2, 3):
        load(held, "lines", hour)
        load(held, "orders", hour)
    age(held)
    assert held.value("SELECT pgtrickle.trim_history('30 days')") == 0


def test_the_last_refresh_stays_and_recent_ones_too(held: Database) -> None:
    add = (
        "INSERT INTO pgtrickle.pgt_refresh_history (pgt_id, action, status, initiated_by, started_at)"
        " SELECT 1, 'FULL', 'COMPLETED', 'MANUAL', now() - days * interval '1 day' FROM unnest(%s::int[]) AS days"
    )
    held.execute(add, [70, 60, 50])
    with local_client(held.dsn, history_retention=55) as (client, _):
        client.tick()
        assert held.value("SELECT count(*) FROM pgtrickle.pgt_refresh_history WHERE action = 'FULL'") == 1
    held.execute("DELETE FROM pgtrickle.pgt_refresh_history")
    held.execute(add, [70, 60, 50])
    held.execute("SELECT pgtrickle.trim_history('30 days')")
    assert held.value("SELECT count(*) FROM pgtrickle.pgt_refresh_history") == 1
