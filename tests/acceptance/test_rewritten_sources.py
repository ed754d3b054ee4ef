"""A source that is truncated or rewritten after a tick took its snapshot is empty there: nothing is made of that.

Everybody else's snapshot shows the rows that were there when it was taken. Not so for TRUNCATE, an ALTER TABLE that
writes the table anew, and COPY FREEZE: who reads the table after them, in a snapshot from before, finds it empty, or
finds rows of a later time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

import pytrickle
from pytrickle.errors import RefreshConflict
from pytrickle.inspect import as_of, verify
from pytrickle.schedule import pass_
from tests.acceptance.companies import companies, create
from tests.acceptance.conftest import TABLES, Meanwhile, Shop, advance
from tests.acceptance.events import advance as advance_events
from tests.acceptance.events import create as create_windows
from tests.acceptance.events import moment
from tests.conftest import Database

GROUPED = "SELECT c.name, count(*) AS orders, sum(o.amount) AS amount FROM customers c LEFT JOIN orders o"
GROUPED = f"{GROUPED} ON o.customer = c.id GROUP BY c.name"
REASON = "was truncated, rewritten, renamed or partitioned otherwise while it was read"
RELOAD = "INSERT INTO customers VALUES (1, 'Eve'), (2, 'Bob'), (3, 'Cy')"
REWRITTEN = {
    "truncated": "TRUNCATE customers",
    "reloaded": f"BEGIN; TRUNCATE customers; {RELOAD}; COMMIT",
    "altered": "ALTER TABLE customers ALTER COLUMN unread TYPE float8 USING random()",
    "frozen": "BEGIN; TRUNCATE customers; COPY customers FROM PROGRAM 'printf \"1\\tEve\\t0\\n\"' (FREEZE); COMMIT",
    "vacuumed": "VACUUM FULL customers",
}
FEW, MANY = "INSERT INTO orders VALUES (7, 1, 70)", "INSERT INTO orders SELECT n, 1, 1 FROM generate_series(7, 5000) n"


@pytest.fixture
def shop(shop: Shop) -> Shop:
    """Orders of two customers, who have a column that nobody reads."""
    shop.db.execute("ALTER TABLE customers ADD unread int")
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20)")
    return shop


def assert_read_again(shop: Shop, *names: str) -> None:
    """The next tick is skipped, changes nothing and fails nothing; the one after it shows what there is now."""
    before = {name: shop.rows(name) for name in names}
    skipped = shop.tick()
    assert {skipped[name].action for name in names} == {"SKIP"}
    reasons = {skipped[name].reason for name in names}
    assert [reason for reason in reasons if f"public.customers {REASON}" in reason]
    assert {name: shop.rows(name) for name in names} == before
    results = shop.tick()
    assert {results[name].action for name in names} <= {"DIFFERENTIAL", "FULL"}
    shop.assert_verified()
    for name in names:
        query = shop.db.value("SELECT defining_query FROM pgtrickle.stream_tables_info WHERE pgt_name = %s", name)
        assert shop.rows(name) == set(shop.db.execute(query))
    assert {result.action for result in shop.tick().values()} == {"NO_DATA"}


@pytest.mark.parametrize("rewriting", REWRITTEN.values(), ids=REWRITTEN)
@pytest.mark.parametrize("query", [TABLES["named"], GROUPED], ids=["joined", "grouped"])
def test_few_changes_are_not_joined_with_it(shop: Shop, meanwhile: Meanwhile, query: str, rewriting: str) -> None:
    shop.pt.create_stream_table("shown", query)
    shop.tick()
    # The first refresh is planned, the second is one transaction from its beginning.
    for change in (FEW, "UPDATE orders SET amount = 71 WHERE id = 7"):
        shop.db.execute(change)
        meanwhile(rewriting)
        assert_read_again(shop, "shown")


@pytest.mark.parametrize("mode", ["AUTO", "FULL"])
def test_many_changes_are_not_joined_with_it(shop: Shop, meanwhile: Meanwhile, mode: str) -> None:
    shop.pt.create_stream_table("shown", GROUPED, refresh_mode=mode)
    shop.tick()
    shop.db.execute(MANY)
    meanwhile(REWRITTEN["reloaded"])
    assert_read_again(shop, "shown")


def test_a_first_load_does_not_show_it_empty(shop: Shop, meanwhile: Meanwhile) -> None:
    shop.pt.create_stream_table("shown", GROUPED)
    meanwhile(REWRITTEN["reloaded"])
    assert_read_again(shop, "shown")


def test_a_change_buffer_that_is_rewritten_is_named(shop: Shop) -> None:
    """A tick holds the lock of every buffer that it has looked into, so this concerns the moment before."""
    shop.pt.create_stream_table("shown", TABLES["totals"])
    shop.tick()
    shop.db.execute(FEW)
    buffer = shop.db.value("SELECT buffer FROM pgtrickle.pgt_change_tracking")
    asked = "SELECT pgtrickle_private.rewritten_source(pgt_id, false) FROM pgtrickle.pgt_stream_tables"
    with shop.db.connect() as reader, reader.transaction():
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert reader.execute(asked).fetchall() == [(None,)]
        shop.db.execute(f"ALTER TABLE {buffer} SET UNLOGGED")
        shop.db.execute(f"ALTER TABLE {buffer} SET LOGGED")
        assert reader.execute(f"SELECT count(*) FROM {buffer}".encode()).fetchone() is not None
        assert reader.execute(asked).fetchall() == [(buffer,)]


@pytest.mark.parametrize("looked", [True, False], ids=["whether there are changes", "how many there are"])
def test_no_window_closes_while_its_buffer_is_rewritten(
    events: Shop, monkeypatch: pytest.MonkeyPatch, looked: bool
) -> None:
    create_windows(events, "gate", emitted="SELECT at AS window_end, id FROM clicks")
    buffer = events.db.value("SELECT buffer FROM pgtrickle.pgt_change_tracking")
    advance_events(events, 300)
    events.tick()
    events.db.execute("INSERT INTO clicks VALUES (1, %s, 1, 1)", moment(310))
    advance_events(events, 400)
    look = pass_.empty_buffers

    def after_another(*arguments: Any) -> frozenset[str]:
        events.db.execute(f"ALTER TABLE {buffer} SET UNLOGGED; ALTER TABLE {buffer} SET LOGGED")
        return look(*arguments) if looked else frozenset()

    with monkeypatch.context() as patched:
        patched.setattr(pass_, "empty_buffers", after_another)
        assert events.tick()["emitted"].action == "SKIP"
    events.tick()
    assert events.rows("emitted") == {(moment(310), 1)}


@pytest.mark.parametrize("kind", ["TABLE", "UNLOGGED TABLE"], ids=["captured", "not captured"])
def test_a_partition_counts_as_its_table(shop: Shop, meanwhile: Meanwhile, kind: str) -> None:
    shop.db.execute("CREATE TABLE regions (id int, name text) PARTITION BY LIST (id)")
    shop.db.execute(f"CREATE {kind} regions_1 PARTITION OF regions FOR VALUES IN (1)")
    shop.db.execute("INSERT INTO regions VALUES (1, 'north')")
    shop.pt.create_stream_table("shown", "SELECT o.id, r.name FROM orders o JOIN regions r ON r.id = o.customer")
    shop.tick()
    shop.db.execute(FEW)
    meanwhile("TRUNCATE regions_1")
    (skipped,) = shop.tick().values()
    assert (skipped.action, skipped.reason.partition(" ")[0]) == ("SKIP", "public.regions_1")
    assert shop.rows("shown") == {(1, "north")}
    shop.tick()
    assert shop.rows("shown") == set()
    shop.assert_verified()


@pytest.mark.parametrize("mode", ["AUTO", "FULL"])
@pytest.mark.parametrize("change", ["ATTACH PARTITION regions_2 FOR VALUES IN (2)", "DETACH PARTITION regions_1"])
def test_a_table_is_read_with_all_its_partitions_or_not_at_all(
    shop: Shop, meanwhile: Meanwhile, mode: str, change: str
) -> None:
    shop.db.execute("CREATE TABLE regions (id int, name text) PARTITION BY LIST (id)")
    shop.db.execute("CREATE TABLE regions_1 PARTITION OF regions FOR VALUES IN (1)")
    shop.db.execute("CREATE TABLE regions_2 (id int, name text)")
    shop.db.execute("INSERT INTO regions VALUES (1, 'north'); INSERT INTO regions_2 VALUES (2, 'south')")
    query = "SELECT o.id, r.name FROM orders o JOIN regions r ON r.id = o.customer"
    shop.pt.create_stream_table("shown", query, refresh_mode=mode)
    shop.tick()
    shop.db.execute("INSERT INTO orders VALUES (7, 1, 70), (8, 2, 80)")
    meanwhile(f"ALTER TABLE regions {change}")
    (skipped,) = shop.tick().values()
    assert (skipped.action, skipped.reason.partition(" ")[0]) == ("SKIP", "public.regions")
    assert shop.rows("shown") == {(1, "north")}
    assert shop.tick()["shown"].action == "REINITIALIZE"
    assert shop.rows("shown") == set(shop.db.execute(query))


def test_tables_refreshed_together_are_all_left_as_they_were(shop: Shop, meanwhile: Meanwhile) -> None:
    shop.pt.create_stream_table("named", TABLES["named"])
    shop.pt.create_stream_table("shown", GROUPED)
    shop.db.execute("SELECT pgtrickle.create_refresh_group('both', ARRAY['named', 'shown'])")
    shop.tick()
    for change in (FEW, MANY.replace("7", "8")):
        shop.db.execute(change)
        meanwhile(REWRITTEN["reloaded"])
        assert_read_again(shop, "named", "shown")


def test_a_cycle_is_left_as_it_was(db: Database, meanwhile: Meanwhile) -> None:
    with companies(db) as group:
        create(group)
        group.tick()
        group.db.execute("CREATE TABLE more_holdings () INHERITS (holdings)")
        group.tick()
        before = group.rows()
        group.db.execute("INSERT INTO holdings VALUES (3, 4)")
        meanwhile("ALTER TABLE holdings ADD unread float8 DEFAULT random()")
        assert set(group.tick().values()) == {"SKIP"}
        assert group.rows() == before
        group.tick()
        assert group.rows() == before | {(4, 100)}


def test_who_asks_for_a_refresh_is_told(local_shop: Shop, meanwhile: Meanwhile) -> None:
    local_shop.pt.create_stream_table("named", TABLES["named"])
    local_shop.tick()
    local_shop.db.execute(FEW)
    meanwhile(REWRITTEN["truncated"])
    asked = local_shop.pt.refresh("named")
    assert (asked.action, asked.reason.partition(" was ")[0]) == ("SKIP", "public.customers")
    assert local_shop.pt.refresh("named").action == "DIFFERENTIAL"
    assert local_shop.rows("named") == set()


ASKED: dict[Any, Callable[[pytrickle.Client], object]] = {
    verify: lambda pt: pt.verify("named").matches,
    as_of: lambda pt: pt.as_of("named", datetime(2026, 1, 1, 10, tzinfo=UTC)).rows,
}


@pytest.mark.parametrize("module", ASKED, ids=["verify", "as of"])
def test_what_is_compared_or_asked_for_is_not_taken_from_it(
    local_shop: Shop, monkeypatch: pytest.MonkeyPatch, module: Any
) -> None:
    local_shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    local_shop.pt.create_stream_table("named", TABLES["named"])
    with local_shop.db.connect() as loader:
        for source in ("orders", "customers"):
            advance(loader, source, "10:00")
    local_shop.tick()
    exported, expected = module.exported_snapshot, ASKED[module](local_shop.pt)
    assert expected

    @contextmanager
    def exported_before_another(dsn: str) -> Iterator[Any]:
        with exported(dsn) as snapshot:
            local_shop.db.execute(REWRITTEN["truncated"])
            yield snapshot

    with monkeypatch.context() as patched:
        patched.setattr(module, "exported_snapshot", exported_before_another)
        with pytest.raises(RefreshConflict, match=r"public\.customers was truncated") as conflict:
            ASKED[module](local_shop.pt)
        assert conflict.value.retryable
    assert ASKED[module](local_shop.pt) == expected
