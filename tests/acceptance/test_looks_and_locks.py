"""Who looks at a stream table never keeps others waiting for ever, nor whoever these keep waiting."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime
from time import monotonic
from typing import Any

import psycopg
import pytest

import pytrickle
from pytrickle.catalog import change_ranges
from pytrickle.database import wait_a_moment
from pytrickle.errors import LockTimeout
from pytrickle.refresh import planner
from tests.acceptance.conftest import TABLES, Shop
from tests.conftest import Database
from tests.repeats import on_both_servers
from tests.waiting import wait_until_blocked

# How one looks, and what one does between reading in a snapshot and asking on another connection.
LOOKS: dict[str, tuple[Callable[[pytrickle.Client], Any], Any, str]] = {
    "explain": (lambda client: client.explain("named"), planner, "understood"),
    "verify": (lambda client: client.verify("named"), change_ranges, "ranges"),
    "as_of": (lambda client: client.as_of("named", datetime(2026, 1, 1, 12, tzinfo=UTC)), change_ranges, "ranges"),
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_truncate_that_waits_for_a_look_is_not_waited_for(
    local_shop: Shop, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    local_shop.pt.create_stream_table("named", TABLES["named"], watermark_retention="1 day")
    local_shop.load("orders", "12:00", (1, 1, 10))
    local_shop.tick()
    local_shop.load("orders", "12:05", (2, 1, 20))
    local_shop.pt._refreshing().planner.shapes.clear()
    loader = local_shop.db.connect()
    loader.execute("SET lock_timeout = '20s'")
    ask, module, name = LOOKS[look]
    step = getattr(module, name)
    with ThreadPoolExecutor(1) as pool:

        def while_another_waits(*arguments: Any) -> Any:
            monkeypatch.undo()
            found = step(*arguments)
            waiting.append(pool.submit(loader.execute, "TRUNCATE orders"))
            wait_until_blocked(local_shop.db, "TRUNCATE orders")
            return found

        waiting: list[Any] = []
        monkeypatch.setattr(module, name, while_another_waits)
        with pytest.raises(LockTimeout):
            ask(local_shop.pt)
        waiting[0].result()
    local_shop.tick()
    assert local_shop.rows("named") == set()
    local_shop.assert_verified()


def test_a_refresh_that_waits_for_a_loader_gives_way_though_that_waited_first(db: Database) -> None:
    """PostgreSQL ends who has waited for deadlock_timeout: the loader, where the refresh waits as long as that."""
    db.execute("CREATE TABLE a (); CREATE TABLE b ()")
    with db.connect(autocommit=False) as reader, db.connect(autocommit=False) as loader, ThreadPoolExecutor(1) as pool:
        for _ in range(5):
            wait_a_moment(reader)
            reader.execute("LOCK TABLE a IN ACCESS SHARE MODE")
            loader.execute("LOCK TABLE b")
            began = monotonic()
            waiting = pool.submit(loader.execute, "LOCK TABLE a")
            wait_until_blocked(db, "LOCK TABLE a")
            late = monotonic() - began > 0.3
            gave_way = False
            try:
                reader.execute("SELECT FROM b")
            except psycopg.errors.LockNotAvailable:
                gave_way = True
            reader.rollback()
            if not late:
                assert gave_way
                assert waiting.result().statusmessage == "LOCK TABLE"
                return
            wait([waiting])
            loader.rollback()
    pytest.fail("The machine is too busy to see who gives way.")


@on_both_servers
def test_a_locked_source_with_generated_columns_stops_its_readers_alone(every_db: Database) -> None:
    virtual = ", a int GENERATED ALWAYS AS (v + 1) VIRTUAL" if every_db.version >= 18 else ""
    every_db.execute(f"CREATE TABLE s (id int, v int, w int GENERATED ALWAYS AS (v * 2) STORED{virtual})")
    every_db.execute("CREATE TABLE t (id int, v int)")
    with pytrickle.connect(every_db.dsn, engine="postgres") as client:
        client.create_stream_table("locked", f"SELECT v, w{', a' if virtual else ''} FROM s")
        client.create_stream_table("other", "SELECT v FROM t")
        client.tick()
        with every_db.connect(autocommit=False) as loader:
            loader.execute("TRUNCATE s")
            every_db.execute("INSERT INTO t VALUES (1, 1)")
            every_db.execute("CREATE VIEW unrelated AS SELECT 1")  # so that the tick looks into the catalogs
            every_db.execute("SET lock_timeout = '10s'")
            assert every_db.value("SELECT count(*) FROM pgtrickle.problems()") == 0
            actions = {result.stream_table: result.action for result in client.tick()}
            assert actions["public.other"] == "DIFFERENTIAL"
        client.tick()
        assert all(found.matches for found in client.verify())
