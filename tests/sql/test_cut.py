"""What a cut covers, for every interleaving of writers, savepoints, rollbacks and advances."""

import random
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from tests.conftest import Database
from tests.sql.checks import Rows, at_cut, buffer_of

T1, T2, T3 = "2026-03-01 11:55+00", "2026-03-01 12:00+00", "2026-03-01 12:05+00"
ADVANCE = "SELECT pgtrickle.advance_watermark('orders', %s)"


def order(connection: psycopg.Connection[tuple[object, ...]], number: int) -> None:
    connection.execute("INSERT INTO orders VALUES (%s, 'c', 1)", (number,))


def orders_at(db: Database, watermark: str) -> list[int]:
    return [number for (number,) in at_cut(db, "orders", "id", watermark)]


def test_own_rows_before_the_advance_are_covered_and_those_after_are_not(shop: Database) -> None:
    loader = shop.connect(autocommit=False)
    order(loader, 1)
    loader.execute(ADVANCE, (T1,))
    order(loader, 2)
    loader.execute("UPDATE orders SET amount = 7 WHERE id = 1")
    loader.commit()
    assert at_cut(shop, "orders", "id, amount::int", T1) == [(1, 1)]


def test_a_writer_that_began_before_and_commits_after_is_beyond_the_cut_once(shop: Database) -> None:
    slow, loader = shop.connect(autocommit=False), shop.connect(autocommit=False)
    order(slow, 1)
    order(loader, 2)
    loader.execute(ADVANCE, (T1,))
    loader.commit()
    slow.commit()
    assert orders_at(shop, T1) == [2]
    shop.execute(ADVANCE, T2)
    assert (orders_at(shop, T1), orders_at(shop, T2)) == ([2], [1, 2])


def test_a_writer_that_commits_before_the_advance_is_covered(shop: Database) -> None:
    early, loader = shop.connect(autocommit=False), shop.connect(autocommit=False)
    order(loader, 1)
    order(early, 2)
    early.commit()
    loader.execute(ADVANCE, (T1,))
    loader.commit()
    assert orders_at(shop, T1) == [1, 2]


def test_two_advances_in_one_transaction_have_two_cuts(shop: Database) -> None:
    loader = shop.connect(autocommit=False)
    for number, watermark in enumerate((T1, T2, T3)):
        order(loader, number)
        loader.execute(ADVANCE, (watermark,))
    loader.commit()
    assert [orders_at(shop, t) for t in (T1, T2, T3)] == [[0], [0, 1], [0, 1, 2]]


def test_rows_of_savepoints_count_by_where_the_advance_stands(shop: Database) -> None:
    loader = shop.connect(autocommit=False)
    loader.execute("SAVEPOINT a")
    order(loader, 1)
    loader.execute("RELEASE a")
    loader.execute("SAVEPOINT b")
    order(loader, 2)
    loader.execute("ROLLBACK TO b")
    loader.execute("SAVEPOINT c")
    loader.execute(ADVANCE, (T1,))
    order(loader, 3)
    loader.commit()
    assert orders_at(shop, T1) == [1]


def test_own_rows_after_the_advance_stay_beyond_it_whoever_else_committed(shop: Database) -> None:
    """PostgreSQL shows a transaction its own xid as ended once a younger one has ended."""
    loader = shop.connect(autocommit=False)
    order(loader, 1)
    order(shop.connect(), 2)
    loader.execute(ADVANCE, (T1,))
    order(loader, 3)
    assert loader.execute("SELECT pg_visible_in_snapshot(pg_current_xact_id(), pg_current_snapshot())").fetchone() == (
        True,
    )
    loader.commit()
    assert orders_at(shop, T1) == [1, 2]


def test_an_advance_that_is_rolled_back_leaves_nothing(shop: Database) -> None:
    loader = shop.connect(autocommit=False)
    order(loader, 1)
    loader.execute("SAVEPOINT s")
    loader.execute(ADVANCE, (T2,))
    loader.execute("ROLLBACK TO s")
    loader.execute(ADVANCE, (T1,))
    loader.commit()
    loader.execute(ADVANCE, (T3,))
    loader.rollback()
    assert shop.execute("SELECT watermark = %s FROM pgtrickle.pgt_watermarks", T1) == [(True,)]
    assert shop.value("SELECT count(*) FROM pgtrickle.pgt_watermark_history") == 1


def test_update_delete_and_truncate_beyond_the_cut_are_undone(shop: Database) -> None:
    shop.execute("INSERT INTO orders SELECT i, 'c', i FROM generate_series(1, 4) AS i")
    shop.execute(ADVANCE, T1)
    shop.execute("UPDATE orders SET amount = 99 WHERE id = 1")
    shop.execute("DELETE FROM orders WHERE id = 2")
    shop.execute("TRUNCATE orders")
    shop.execute("INSERT INTO orders VALUES (9, 'x', 9)")
    assert at_cut(shop, "orders", "id, amount::int", T1) == [(1, 1), (2, 2), (3, 3), (4, 4)]


@dataclass
class Play:
    """A reproducible interleaving of loaders: what each watermark showed first, and what it must not (`beyond`)."""

    db: Database
    connections: list[psycopg.Connection[Any]]
    seen: dict[str, Rows] = field(default_factory=dict)
    beyond: dict[str, int] = field(default_factory=dict)
    number: int = 0

    def step(self, numbers: random.Random) -> None:
        """Have one of the loaders write, write in a savepoint that is rolled back, end its transaction, or advance."""
        connection = numbers.choice(self.connections)
        match numbers.randrange(8):
            case 0 | 1 | 2:
                self.write(connection)
            case 3:
                connection.execute("SAVEPOINT s")
                self.write(connection)
                connection.execute("ROLLBACK TO s")
            case 4 | 5:
                connection.commit()
            case 6:
                connection.rollback()
            case _:
                self.advance(connection)

    def write(self, connection: psycopg.Connection[Any]) -> None:
        self.number += 1
        order(connection, self.number)

    def advance(self, connection: psycopg.Connection[Any]) -> None:
        """Advance, write one row more, and commit."""
        minute = len(self.seen) + 1
        watermark = f"2026-03-01 {minute // 60:02}:{minute % 60:02}+00"
        connection.execute(ADVANCE, (watermark,))
        self.write(connection)
        self.beyond[watermark] = self.number
        connection.commit()
        self.seen[watermark] = at_cut(self.db, "orders", "id", watermark)


@pytest.fixture
def played(shop: Database) -> Play:
    """Four loaders after 150 steps; no watermark has shown other rows in between."""
    numbers = random.Random(7)
    play = Play(shop, [shop.connect(autocommit=False) for _ in range(4)])
    for _ in range(150):
        play.step(numbers)
        for watermark, rows in play.seen.items():
            assert at_cut(shop, "orders", "id", watermark) == rows
    assert len(play.seen) > 5
    return play


def test_the_same_watermark_selects_the_same_rows_for_ever(played: Play) -> None:
    assert not any((played.beyond[watermark],) in rows for watermark, rows in played.seen.items())
    # Later cuts show all that earlier ones show.
    ordered = list(played.seen.values())
    assert all(set(earlier) <= set(later) for earlier, later in pairwise(ordered))


def test_cuts_of_a_source_form_a_chain_and_cover_nothing_written_after_them(played: Play) -> None:
    covered_later = (
        f"SELECT h.watermark, b.id, b.pgt_lsn, (h.cut).lsn FROM "
        f"pgtrickle.pgt_watermark_history AS h, {buffer_of(played.db, 'orders')} AS b "
        "WHERE pgtrickle.covers(h.cut, b.pgt_xid, b.pgt_pos) AND (b.pgt_lsn <= (h.cut).lsn) IS NOT TRUE"
    )
    assert played.db.execute(covered_later) == []
    out_of_order = (
        "SELECT a.watermark, b.watermark FROM pgtrickle.pgt_watermark_history AS a JOIN "
        "pgtrickle.pgt_watermark_history AS b ON a.watermark <= b.watermark "
        "WHERE NOT pgtrickle.cut_covers(b.cut, a.cut)"
    )
    assert played.db.execute(out_of_order) == []


def test_lsn_invariant_can_fail(shop: Database) -> None:
    order(shop.connect(), 1)
    shop.execute(ADVANCE, T1)
    shop.execute("UPDATE pgtrickle.pgt_watermark_history SET cut.lsn = '0/1'")
    covered_later = (
        f"SELECT count(*) FROM pgtrickle.pgt_watermark_history AS h, {buffer_of(shop, 'orders')} AS b "
        "WHERE pgtrickle.covers(h.cut, b.pgt_xid, b.pgt_pos) AND (b.pgt_lsn <= (h.cut).lsn) IS NOT TRUE"
    )
    assert shop.value(covered_later) == 1


@pytest.mark.parametrize(
    ("later", "earlier", "covers"),
    [
        ("10:12:11", "10:12:11", True),
        ("10:13:11", "10:12:11", True),
        ("10:13:11", "10:12:", False),
        ("10:12:", "10:13:", False),
        ("12:12:", "10:12:10,11", True),
        ("10:12:10", "11:12:11", False),
    ],
)
def test_cut_covers_compares_what_is_visible(db: Database, later: str, earlier: str, covers: bool) -> None:
    query = (
        "SELECT pgtrickle.cut_covers(ROW(%s, NULL, NULL, NULL)::pgtrickle.cut, ROW(%s, NULL, "
        "NULL, NULL)::pgtrickle.cut)"
    )
    assert db.value(query, later, earlier) is covers


def test_cut_covers_never_claims_too_much(db: Database) -> None:
    """For random cuts: where cut_covers() says yes, every change the earlier one covers is covered by the later one."""
    wrong = db.execute("""
        WITH snapshots AS (
            SELECT (lo || ':' || hi || ':' || array_to_string(ARRAY(
                SELECT x FROM generate_series(lo, hi - 1) AS x
                WHERE (mask >> (x - 3)::int) & 1 = 1 ORDER BY x), ','))::pg_snapshot AS s
            FROM generate_series(3, 6) AS lo, generate_series(3, 6) AS hi, generate_series(0, 7) AS mask
            WHERE lo <= hi),
        cuts AS (
            SELECT DISTINCT ROW(s, NULLIF(x, 2)::text::xid8, 1, NULL)::pgtrickle.cut::text AS c
            FROM snapshots, generate_series(2, 6) AS x
            WHERE x = 2 OR NOT pg_visible_in_snapshot(x::text::xid8, s)),
        changes AS (SELECT x::text::xid8 AS xid, pos FROM generate_series(3, 7) AS x, generate_series(1, 2) AS pos)
        SELECT a.c, b.c FROM cuts AS a, cuts AS b
        WHERE pgtrickle.cut_covers(a.c::pgtrickle.cut, b.c::pgtrickle.cut) AND EXISTS (
            SELECT FROM changes WHERE pgtrickle.covers(b.c::pgtrickle.cut, xid, pos::bigint)
                AND NOT pgtrickle.covers(a.c::pgtrickle.cut, xid, pos::bigint))
        LIMIT 3""")
    assert wrong == []


def test_a_cut_of_nothing_covers_nothing_and_is_never_unknown(db: Database) -> None:
    assert db.execute(
        "SELECT pgtrickle.covers(NULL, '5', 1), pgtrickle.covers(ROW('10:10:', NULL, NULL, "
        "NULL)::pgtrickle.cut, '12', 1)"
    ) == [(False, False)]


@pytest.mark.parametrize(
    ("xid", "pos", "covered"),
    [
        ("9", 99, True),
        ("10", 99, True),
        ("11", 99, False),
        ("12", 99, False),
        ("13", 5, True),
        ("13", 6, False),
        ("14", 1, False),
    ],
)
def test_covers_is_what_is_visible_or_own_up_to_the_position(db: Database, xid: str, pos: int, covered: bool) -> None:
    cut = "ROW('10:12:11', '13', 5, NULL)::pgtrickle.cut"
    assert db.value(f"SELECT pgtrickle.covers({cut}, %s::xid8, %s::bigint)", xid, pos) is covered


def test_covers_is_inlined(db: Database) -> None:
    db.execute("CREATE TABLE t (x xid8, p bigint)")
    plan = db.execute(
        "EXPLAIN (VERBOSE, COSTS off) SELECT FROM t WHERE NOT "
        "pgtrickle.covers(ROW('10:12:11', '11', 1, NULL)::pgtrickle.cut, x, p)"
    )
    assert "covers" not in str(plan)


def test_current_cut_is_what_the_session_sees(shop: Database) -> None:
    reader, writer = shop.connect(autocommit=False), shop.connect(autocommit=False)
    order(writer, 1)
    reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    (cut,) = reader.execute("SELECT pgtrickle.current_cut()::text").fetchone() or ()
    writer.commit()
    assert (reader.execute("SELECT pgtrickle.current_cut()::text").fetchone() or ("",))[0].split(",")[0] == cut.split(
        ","
    )[0]
    covered = f"SELECT pgtrickle.covers(%s::pgtrickle.cut, pgt_xid, pgt_pos) FROM {buffer_of(shop, 'orders')}"
    assert shop.value(covered, cut) is False
    assert shop.value(covered, shop.value("SELECT pgtrickle.current_cut()::text")) is True
