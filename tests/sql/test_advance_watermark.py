"""Advancing a watermark: never backwards, with the rights of a loader, and nothing else than it says."""

import json
import threading

import psycopg
import pytest

from tests.conftest import Database
from tests.sql.checks import catalog_state, refused

ADVANCE = "SELECT pgtrickle.advance_watermark('orders', %s)"
T1, T2, T3 = "2026-03-01 11:00+00", "2026-03-01 12:00+00", "2026-03-01 13:00+00"
CURRENT = (
    "SELECT to_char(watermark AT TIME ZONE 'UTC', 'HH24:MI') FROM "
    "pgtrickle.pgt_watermarks WHERE source_relid = 'orders'::regclass"
)


@pytest.mark.parametrize(
    ("call", "sqlstate"),
    [
        ("SELECT pgtrickle.advance_watermark('orders', '2026-03-01 11:59+00')", "22000"),
        ("SELECT pgtrickle.advance_watermark('orders', NULL)", "22004"),
        ("SELECT pgtrickle.advance_watermark(NULL, '2026-03-01')", "22004"),
        ("SELECT pgtrickle.advance_watermark('orders', '-infinity')", "22023"),
        ("SELECT pgtrickle.advance_watermark('orders', '12000-01-01')", "22023"),
        ("SELECT pgtrickle.advance_watermark('orders', '9999-12-31 23:59:59.999999+00')", "22023"),
        ("SELECT pgtrickle.advance_watermark('orders', '0044-03-15 BC')", "22023"),
        ("SELECT pgtrickle.advance_watermark(1::oid::regclass, '2026-03-01')", "42P01"),
        ("SELECT pgtrickle.advance_watermark('report', '2027-03-01')", "42809"),
        ("SELECT pgtrickle.advance_watermark('pg_stat_activity', '2027-03-01')", "42809"),
    ],
)
def test_bad_advances_are_refused_and_change_nothing(shop: Database, call: str, sqlstate: str) -> None:
    shop.execute(ADVANCE, T2)
    before = catalog_state(shop)
    with refused(sqlstate):
        shop.execute(call)
    assert catalog_state(shop) == before


@pytest.mark.parametrize("edge", ["0001-01-01 00:00+00", "9999-12-31 23:59:59+00", "infinity"])
def test_all_that_clients_can_read_may_be_asserted(shop: Database, edge: str) -> None:
    shop.execute(ADVANCE, edge)
    assert shop.value("SELECT watermark = %s::timestamptz FROM pgtrickle.pgt_watermarks", edge)


def test_an_unknown_table_is_refused_by_name(shop: Database) -> None:
    with pytest.raises(Exception, match="orderz") as raised:
        shop.execute("SELECT pgtrickle.advance_watermark('orderz', now())")
    assert getattr(raised.value, "sqlstate", None) == "42P01"


def test_an_equal_watermark_is_a_sign_of_life_only(shop: Database) -> None:
    shop.execute(ADVANCE, T1)
    columns = "watermark, cut::text, advanced_at, advanced_by"
    before = shop.execute(f"SELECT {columns}, last_seen_at FROM pgtrickle.pgt_watermarks")[0]
    listener = shop.connect()
    listener.execute("LISTEN pgtrickle_watermark")
    shop.execute(ADVANCE, T1)
    after = shop.execute(f"SELECT {columns}, last_seen_at FROM pgtrickle.pgt_watermarks")[0]
    assert after[:-1] == before[:-1] and after[-1] > before[-1]
    assert shop.value("SELECT count(*) FROM pgtrickle.pgt_watermark_history") == 1
    assert list(listener.notifies(timeout=0)) == []


def test_an_advance_notifies_at_commit(shop: Database) -> None:
    listener, loader = shop.connect(), shop.connect(autocommit=False)
    listener.execute("LISTEN pgtrickle_watermark")
    loader.execute(ADVANCE, (T1,))
    listener.execute("SELECT 1")
    assert list(listener.notifies(timeout=0)) == []
    loader.commit()
    (notification,) = listener.notifies(timeout=5, stop_after=1)
    assert json.loads(notification.payload)["source"] == "public.orders"


def test_advanced_at_is_the_time_of_the_call_not_of_the_transaction(shop: Database) -> None:
    loader = shop.connect(autocommit=False)
    (started,) = loader.execute("SELECT now() FROM pg_sleep(0.01)").fetchone() or ()
    loader.execute(ADVANCE, (T1,))
    loader.commit()
    assert shop.value("SELECT advanced_at > %s FROM pgtrickle.pgt_watermarks", started)


@pytest.mark.parametrize("first", [True, False], ids=["first ever", "later"])
def test_a_blocked_older_advance_fails_and_never_moves_the_watermark_back(shop: Database, first: bool) -> None:
    if not first:
        shop.execute(ADVANCE, T1)
    newer, older = shop.connect(autocommit=False), shop.connect(autocommit=False)
    newer.execute(ADVANCE, (T3,))
    failures: list[BaseException] = []

    def advance() -> None:
        try:
            older.execute(ADVANCE, (T2,))
        except Exception as error:
            failures.append(error)

    blocked = threading.Thread(target=advance)
    blocked.start()
    while not shop.value("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %s", older.info.backend_pid):
        pass
    newer.commit()
    blocked.join(timeout=30)
    assert [getattr(failure, "sqlstate", None) for failure in failures] == ["22000"]
    assert shop.value(CURRENT) == "13:00"


def test_a_blocked_advance_goes_on_when_the_first_one_rolls_back(shop: Database) -> None:
    first, second = shop.connect(autocommit=False), shop.connect()
    first.execute(ADVANCE, (T3,))
    blocked = threading.Thread(target=lambda: second.execute(ADVANCE, (T2,)))
    blocked.start()
    while not shop.value("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %s", second.info.backend_pid):
        pass
    first.rollback()
    blocked.join(timeout=30)
    assert shop.value(CURRENT) == "12:00"


def test_a_blocked_newer_advance_covers_what_the_first_one_loaded(shop: Database) -> None:
    first, second = shop.connect(autocommit=False), shop.connect()
    first.execute("INSERT INTO orders VALUES (1)")
    first.execute(ADVANCE, (T1,))
    blocked = threading.Thread(target=lambda: second.execute(ADVANCE, (T2,)))
    blocked.start()
    while not shop.value("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %s", second.info.backend_pid):
        pass
    first.commit()
    blocked.join(timeout=30)
    assert shop.value(
        "SELECT pgtrickle.cut_covers(b.cut, a.cut) FROM pgtrickle.pgt_watermark_history AS a, "
        "pgtrickle.pgt_watermark_history AS b "
        "WHERE a.watermark = %s AND b.watermark = %s",
        T1,
        T2,
    )


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("first", [True, False], ids=["first ever", "later"])
def test_under_an_older_snapshot_a_concurrent_advance_is_a_serialization_failure(
    shop: Database, level: str, first: bool
) -> None:
    if not first:
        shop.execute(ADVANCE, T1)
    loader = shop.connect(autocommit=False)
    loader.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
    loader.execute("SELECT count(*) FROM orders")
    shop.execute(ADVANCE, T2)
    with pytest.raises(Exception, match="could not serialize") as raised:
        loader.execute(ADVANCE, (T3,))
    assert getattr(raised.value, "sqlstate", None) == "40001"
    loader.rollback()
    assert shop.value(CURRENT) == "12:00"


def test_repeatable_read_covers_what_its_snapshot_shows(shop: Database) -> None:
    loader = shop.connect(autocommit=False)
    loader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    loader.execute("INSERT INTO orders VALUES (1)")
    shop.execute("INSERT INTO orders VALUES (2)")
    loader.execute(ADVANCE, (T1,))
    loader.commit()
    buffer = shop.value("SELECT buffer FROM pgtrickle.pgt_change_tracking WHERE source_relid = 'orders'::regclass")
    assert shop.execute(
        f"SELECT id, pgtrickle.covers(w.cut, pgt_xid, pgt_pos) FROM {buffer}, pgtrickle.pgt_watermarks AS w ORDER BY id"
    ) == [
        (1, True),
        (2, False),
    ]


def test_an_exhausted_source_is_infinite_and_cannot_go_back(shop: Database) -> None:
    shop.execute(ADVANCE, "infinity")
    shop.execute(ADVANCE, "infinity")
    with refused("22000"):
        shop.execute(ADVANCE, T1)


def test_a_loader_needs_insert_and_nothing_else(shop: Database) -> None:
    shop.create_role("loader")
    loader = shop.connect()
    loader.execute("SET SESSION AUTHORIZATION loader")
    with refused("42501", "GRANT INSERT ON public.orders TO loader"):
        loader.execute(ADVANCE, (T1,))
    shop.execute("GRANT INSERT ON orders TO loader")
    loader.execute("INSERT INTO orders (id) VALUES (1)")
    loader.execute(ADVANCE, (T1,))
    assert shop.execute("SELECT advanced_by FROM pgtrickle.pgt_watermarks") == [("loader",)]
    for query in (
        "INSERT INTO pgtrickle.pgt_watermarks (source_relid) SELECT source_relid FROM pgtrickle.pgt_watermarks",
        "SELECT * FROM pgtrickle.pgt_watermark_history",
        "SELECT pgtrickle_private.lock_watermark('postgres', 'orders')",
        "SELECT nextval('pgtrickle.change_pos')",
    ):
        with pytest.raises(Exception, match="permission denied"):
            loader.execute(query)


def test_the_role_set_for_the_transaction_decides(shop: Database) -> None:
    shop.create_role("loader")
    connection = shop.connect()
    connection.execute("SET ROLE loader")
    with refused("42501"):
        connection.execute(ADVANCE, (T1,))


def test_foreign_tables_may_have_watermarks(shop: Database) -> None:
    shop.execute("CREATE FOREIGN DATA WRAPPER w")
    shop.execute("CREATE SERVER s FOREIGN DATA WRAPPER w")
    shop.execute("CREATE FOREIGN TABLE f (a integer) SERVER s")
    shop.execute("SELECT pgtrickle.advance_watermark('f', now())")
    assert shop.value("SELECT count(*) FROM pgtrickle.watermarks()") == 1


QUIETLY = "SET LOCAL pgtrickle.notify = off"
TELLING = {
    "advance": ADVANCE.replace("%s", f"'{T2}'"),
    "ungate": "SELECT pgtrickle.ungate_source('orders')",
    "idle": "SELECT pgtrickle.mark_idle('orders')",
    "request": "SELECT pgtrickle.refresh_stream_table('report')",
    "resume": "SELECT pgtrickle.resume_stream_table('report')",
    "alter": "SELECT pgtrickle.alter_stream_table('report', schedule => '1 minute')",
    "create": "SELECT pgtrickle.create_stream_table('another', 'SELECT * FROM orders')",
}


@pytest.mark.parametrize("name", TELLING)
def test_a_transaction_that_wakes_nobody_can_be_prepared(shop: Database, name: str) -> None:
    shop.execute(ADVANCE, T1)
    shop.execute("SELECT pgtrickle.gate_source('orders')")
    before = catalog_state(shop)
    for setting, prepared in ((None, False), (QUIETLY, True)):
        with shop.connect(autocommit=False) as loader:
            if setting:
                loader.execute(setting)
            loader.execute(TELLING[name].encode())
            if not prepared:
                with pytest.raises(psycopg.errors.FeatureNotSupported, match="NOTIFY"):
                    loader.execute("PREPARE TRANSACTION 'load'")
                loader.rollback()
                continue
            loader.execute("PREPARE TRANSACTION 'load'")
            assert catalog_state(shop) == before
    shop.execute("COMMIT PREPARED 'load'")
    assert shop.value(CURRENT) == ("12:00" if name == "advance" else "11:00")


def test_who_is_not_told_is_told_again_by_the_next_transaction(shop: Database) -> None:
    listener = shop.connect()
    listener.execute("LISTEN pgtrickle_watermark")
    with shop.connect() as loader:
        with loader.transaction():
            loader.execute(QUIETLY)
            loader.execute(ADVANCE.encode(), (T1,))
        assert list(listener.notifies(timeout=0)) == []
        loader.execute(ADVANCE.encode(), (T2,))
    assert len(list(listener.notifies(timeout=5, stop_after=1))) == 1


def test_serializable_loaders_of_different_sources_do_not_meet(shop: Database) -> None:
    sources = ("orders", "order_lines")
    shop.execute("SELECT pgtrickle.advance_watermark(s, %s) FROM unnest(%s::text[]) AS s", T1, list(sources))
    loaders = {source: shop.connect(autocommit=False) for source in sources}
    begin, advance = "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SELECT pgtrickle.advance_watermark('{0}', '{1}')"
    for statement in (begin, "SELECT count(*) FROM {0}", "INSERT INTO {0} VALUES (9)", advance):
        for source, loader in loaders.items():
            loader.execute(statement.format(source, T3))
    for loader in loaders.values():
        loader.commit()
    assert shop.value("SELECT count(*) FROM pgtrickle.pgt_watermarks WHERE watermark = %s", T3) == 2
