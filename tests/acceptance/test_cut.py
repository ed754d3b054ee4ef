"""What a held-back stream table shows is exactly what its cut covers, however transactions interleave."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.acceptance.conftest import Shop, advance, assert_shows
from tests.repeats import first
from tests.waiting import wait_until_blocked


@pytest.mark.parametrize("isolation", first(1, ("READ COMMITTED", "REPEATABLE READ")))
def test_late_commit_is_absent_at_its_cut_and_picked_up_once(held: Shop, isolation: str) -> None:
    writer = held.db.connect(autocommit=False)
    writer.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
    writer.execute("INSERT INTO orders VALUES (1, 1, 10)")
    held.load("orders", "12:00", (2, 1, 20))
    held.tick()
    assert_shows(held, (2, 1, 20))
    writer.execute("INSERT INTO orders VALUES (3, 2, 30)")
    writer.execute("UPDATE orders SET amount = 11 WHERE id = 1")
    writer.commit()
    held.db.execute("INSERT INTO orders VALUES (4, 2, 40)")
    held.tick()
    assert_shows(held, (2, 1, 20))
    held.load("orders", "12:05", (5, 1, 50))
    held.tick()
    everything = ((1, 1, 11), (2, 1, 20), (3, 2, 30), (4, 2, 40), (5, 1, 50))
    assert_shows(held, *everything)
    held.load("orders", "12:10")
    held.tick()
    assert_shows(held, *everything)


def test_prepared_transaction_is_absent_until_a_cut_after_its_commit(held: Shop) -> None:
    writer = held.db.connect(autocommit=False)
    writer.execute("INSERT INTO orders VALUES (1, 1, 10)")
    writer.execute("PREPARE TRANSACTION 'late'")
    held.load("orders", "12:00", (2, 1, 20))
    held.tick()
    held.db.execute("COMMIT PREPARED 'late'")
    held.tick()
    assert_shows(held, (2, 1, 20))
    held.load("orders", "12:05")
    held.tick()
    assert_shows(held, (1, 1, 10), (2, 1, 20))


def test_rows_inserted_after_the_advance_in_its_transaction_are_beyond_the_cut(held: Shop) -> None:
    with held.db.connect() as loader, loader.transaction():
        loader.execute("INSERT INTO orders VALUES (1, 1, 10)")
        advance(loader, "orders", "12:00")
        loader.execute("INSERT INTO orders VALUES (2, 1, 20)")
        loader.execute("UPDATE orders SET amount = 11 WHERE id = 1")
    held.tick()
    assert_shows(held, (1, 1, 10))
    held.tick()
    assert_shows(held, (1, 1, 10))
    held.load("orders", "12:05")
    held.tick()
    assert_shows(held, (1, 1, 11), (2, 1, 20))


def test_two_advances_in_one_transaction_are_two_cuts(held: Shop) -> None:
    held.load("orders", "11:55", (1, 1, 10))
    held.pt.create_watermark_group("with lines", ["orders", "order_lines"])
    held.load("order_lines", "12:00")
    with held.db.connect() as loader, loader.transaction():
        loader.execute("INSERT INTO orders VALUES (2, 1, 20)")
        advance(loader, "orders", "12:00")
        loader.execute("INSERT INTO orders VALUES (3, 2, 30)")
        advance(loader, "orders", "12:05")
        loader.execute("INSERT INTO orders VALUES (4, 2, 40)")
    held.tick()
    assert_shows(held, (1, 1, 10), (2, 1, 20))
    held.load("order_lines", "12:05")
    held.tick()
    assert_shows(held, (1, 1, 10), (2, 1, 20), (3, 2, 30))


def test_savepoints_count_as_the_transaction_they_are_part_of(held: Shop) -> None:
    with held.db.connect() as loader, loader.transaction():
        with loader.transaction():
            loader.execute("INSERT INTO orders VALUES (1, 1, 10)")
        with loader.transaction(force_rollback=True):
            loader.execute("INSERT INTO orders VALUES (2, 1, 20)")
        with loader.transaction(force_rollback=True):
            advance(loader, "orders", "11:00")
            loader.execute("INSERT INTO orders VALUES (3, 1, 30)")
        with loader.transaction():
            advance(loader, "orders", "12:00")
        with loader.transaction():
            loader.execute("INSERT INTO orders VALUES (4, 2, 40)")
    assert [str(row.watermark) for row in held.pt.watermark_history("orders")] == ["2026-01-01 12:00:00+00:00"]
    held.tick()
    assert_shows(held, (1, 1, 10))
    held.load("orders", "12:05")
    held.tick()
    assert_shows(held, (1, 1, 10), (4, 2, 40))


def test_advance_that_is_rolled_back_never_happened(held: Shop) -> None:
    held.load("orders", "12:00", (1, 1, 10))
    with held.db.connect() as loader, loader.transaction(force_rollback=True):
        loader.execute("INSERT INTO orders VALUES (2, 1, 20)")
        advance(loader, "orders", "12:05")
    held.tick()
    assert_shows(held, (1, 1, 10))
    assert [str(row.watermark) for row in held.pt.watermarks()] == ["2026-01-01 12:00:00+00:00"]
    held.load("orders", "12:03", (3, 1, 30))
    held.tick()
    assert_shows(held, (1, 1, 10), (3, 1, 30))


def test_loader_that_comes_second_with_an_older_watermark_is_refused_and_loses_nothing_of_the_first(
    held: Shop,
) -> None:
    first, second = held.db.connect(autocommit=False), held.db.connect(autocommit=False)
    first.execute("INSERT INTO orders VALUES (1, 1, 10)")
    second.execute("INSERT INTO orders VALUES (2, 1, 20)")
    advance(second, "orders", "12:10")
    with ThreadPoolExecutor(1) as thread:
        blocked = thread.submit(advance, first, "orders", "12:05")
        wait_until_blocked(held.db, "advance_watermark")
        second.commit()
        with pytest.raises(psycopg.errors.DataException) as refused:
            blocked.result(timeout=10)
    assert refused.value.sqlstate == "22000"
    first.rollback()
    held.tick()
    assert_shows(held, (2, 1, 20))
    held.load("orders", "12:15", (1, 1, 10))
    held.tick()
    assert_shows(held, (1, 1, 10), (2, 1, 20))


def test_loader_that_waited_for_another_covers_what_that_one_loaded(held: Shop) -> None:
    first, second = held.db.connect(autocommit=False), held.db.connect(autocommit=False)
    second.execute("INSERT INTO orders VALUES (2, 1, 20)")
    first.execute("INSERT INTO orders VALUES (1, 1, 10)")
    advance(first, "orders", "12:05")
    with ThreadPoolExecutor(1) as thread:
        blocked = thread.submit(advance, second, "orders", "12:10")
        wait_until_blocked(held.db, "advance_watermark")
        first.execute("INSERT INTO orders VALUES (3, 2, 30)")
        first.commit()
        blocked.result(timeout=10)
    held.tick()
    assert_shows(held, (1, 1, 10))
    second.commit()
    held.tick()
    assert_shows(held, (1, 1, 10), (2, 1, 20), (3, 2, 30))


def test_loader_under_an_older_snapshot_is_refused_rather_than_break_the_chain_of_cuts(held: Shop) -> None:
    old = held.db.connect(autocommit=False)
    old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    old.execute("SELECT 1 FROM orders")
    held.load("orders", "12:00", (1, 1, 10))
    old.execute("INSERT INTO orders VALUES (2, 1, 20)")
    with pytest.raises(psycopg.errors.SerializationFailure):
        advance(old, "orders", "12:05")
    old.rollback()
    held.tick()
    assert_shows(held, (1, 1, 10))


def test_lsn_of_a_covered_row_is_never_above_that_of_its_cut_although_the_lsn_alone_is_no_cut(held: Shop) -> None:
    late = held.db.connect(autocommit=False)
    late.execute("INSERT INTO orders VALUES (1, 1, 10)")
    with held.db.connect() as loader, loader.transaction():
        loader.execute("INSERT INTO orders VALUES (2, 1, 20)")
        advance(loader, "orders", "12:00")
        loader.execute("INSERT INTO orders VALUES (3, 1, 30)")
    late.commit()
    held.load("orders", "12:05", (4, 1, 40))
    buffer = held.db.value("SELECT buffer FROM pgtrickle.pgt_change_tracking WHERE source_relid = 'orders'::regclass")
    pairs = held.db.execute(
        f"SELECT to_char(h.watermark AT TIME ZONE 'UTC', 'HH24:MI'), c.id, pgtrickle.covers(h.cut, pgt_xid, pgt_pos),"
        f" pgt_lsn <= (h.cut).lsn FROM pgtrickle.pgt_watermark_history AS h, {buffer} AS c"
    )
    covered = {(clock, row) for clock, row, is_covered, _ in pairs if is_covered}
    assert covered == {("12:00", 2), *(("12:05", row) for row in (1, 2, 3, 4))}
    assert all(not_above for _, _, is_covered, not_above in pairs if is_covered)
    assert ("12:00", 1, False, True) in pairs


def test_own_changes_after_the_advance_stay_beyond_the_cut_though_a_younger_transaction_has_ended(held: Shop) -> None:
    with held.db.connect() as loader, loader.transaction():
        loader.execute("INSERT INTO orders VALUES (1, 1, 10)")
        held.db.execute("INSERT INTO orders VALUES (2, 2, 20)")
        advance(loader, "orders", "12:00")
        loader.execute("INSERT INTO orders VALUES (3, 1, 30)")
    held.tick()
    assert_shows(held, (1, 1, 10), (2, 2, 20))
    held.load("orders", "12:05")
    held.tick()
    assert_shows(held, (1, 1, 10), (2, 2, 20), (3, 1, 30))
