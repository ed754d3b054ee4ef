"""Failures through Python: the right class, one sentence, a hint, and untouched data."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import pytrickle
from pytrickle import errors
from pytrickle.catalog import session_settings
from tests.acceptance.conftest import Shop, assert_explained
from tests.conftest import Database
from tests.servers import OLDEST, Server
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def shop(spark_shop: Shop) -> Shop:
    """Spark is what these tests are about, so every run plays them through it."""
    return spark_shop


def test_view_that_is_replaced_below_a_stream_table_is_noticed(filled: Shop) -> None:
    filled.db.execute("INSERT INTO orders VALUES (2, 2, 20)")
    filled.db.execute("CREATE VIEW small AS SELECT id, amount FROM orders")
    filled.pt.create_stream_table("viewed", "SELECT id, amount FROM small")
    filled.tick()
    filled.db.execute("CREATE OR REPLACE VIEW small AS SELECT id, amount + 1 AS amount FROM orders WHERE id <> 2")
    filled.db.execute("INSERT INTO orders VALUES (3, 1, 30)")
    filled.tick()
    assert filled.rows("viewed") == {(1, 11), (3, 31)}
    filled.db.execute("CREATE OR REPLACE VIEW small AS SELECT id, id AS amount FROM customers")
    filled.tick()
    filled.db.execute("INSERT INTO customers VALUES (3, 'Cy')")
    filled.tick()
    assert filled.rows("viewed") == {(1, 1), (2, 2), (3, 3)}
    filled.assert_verified()


def test_cycle_through_a_replaced_view_is_an_error_and_leaves_the_tables_as_they_are(filled: Shop) -> None:
    filled.db.execute("CREATE VIEW between_them AS SELECT id FROM orders")
    filled.pt.create_stream_table("first", "SELECT id FROM between_them")
    filled.pt.create_stream_table("second", "SELECT id FROM first")
    filled.tick()
    filled.db.execute("CREATE OR REPLACE VIEW between_them AS SELECT id FROM second")
    filled.db.execute("INSERT INTO orders VALUES (2, 1, 20)")
    results = {result.stream_table: result for result in filled.pt.tick()}
    assert {name: result.action for name, result in results.items()} == {
        "public.report": "DIFFERENTIAL",
        "public.first": "FAILED",
        "public.second": "SKIP",
    }
    with pytest.raises(errors.CycleDetected) as refused:
        filled.pt.refresh("first")
    assert_explained(refused.value)
    assert filled.rows("first") == filled.rows("second") == {(1,)}


def test_server_that_cannot_be_reached_is_a_retryable_error_that_keeps_the_password() -> None:
    with (
        pytest.raises(errors.ConnectionLost) as refused,
        pytrickle.connect("postgresql://loader:s3cret@127.0.0.1:1/shop"),
    ):
        pass
    assert refused.value.retryable
    assert "s3cret" not in f"{refused.value} {refused.value.hint}"


def test_missing_java_is_named_and_the_table_stays_as_it_was(
    filled: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    filled.db.execute("INSERT INTO orders VALUES (2, 1, 20)")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytrickle.connect(filled.db.dsn, direct_delta_rows=0) as pt:
        with pytest.raises(errors.JavaMissing) as refused:
            pt.refresh("report")
        assert_explained(refused.value)
        (result,) = pt.tick()
        assert (result.action, result.error) == ("FAILED", refused.value.message)
    assert filled.rows("report") == {(1, 10)}
    with pytrickle.connect(filled.db.dsn) as pt:
        assert pt.refresh("report").rows_inserted == 1, "few changes need no Java"
    assert filled.rows("report") == {(1, 10), (2, 20)}
    assert filled.pt.stream_tables()[0].status == "ACTIVE"


def test_missing_driver_jar_is_named(filled: Shop, tmp_path: Any) -> None:
    filled.db.execute("INSERT INTO orders VALUES (2, 1, 20)")
    with (
        pytrickle.connect(filled.db.dsn, jdbc_jar=str(tmp_path / "none.jar"), direct_delta_rows=0) as pt,
        pytest.raises(errors.JdbcDriverMissing, match=r"none\.jar") as refused,
    ):
        pt.refresh("report")
    assert_explained(refused.value)
    assert filled.rows("report") == {(1, 10)}


def test_failing_spark_job_reports_the_sentence_of_the_database(filled: Shop) -> None:
    filled.pt.create_stream_table("shares", "SELECT id, 100 / amount AS share FROM orders")
    filled.tick()
    filled.db.execute("INSERT INTO orders VALUES (2, 1, 0)")
    with pytest.raises(errors.SparkFailed) as failed:
        filled.pt.refresh("shares")
    assert failed.value.message == "Spark could not compute the refresh: division by zero"
    assert_explained(failed.value)
    assert filled.rows("shares") == {(1, 10)}
    (status,) = (row for row in filled.pt.stream_tables() if row.stream_table == "public.shares")
    assert (status.status, status.last_error) == ("ERROR", failed.value.message)
    assert filled.pt.verify("shares").matches


SLOW = """
CREATE FUNCTION slowly(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql SET lock_timeout = 0 AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(4711);
    RETURN n;
END
$$
"""
# While it waits for which lock the server ends its session: that of the refresher, or one by which Spark reads.
ENDED = (
    "SELECT FROM pgtrickle.pgt_stream_tables WHERE pgt_id = 1 FOR UPDATE",
    "SELECT pg_advisory_xact_lock(4711)",
)
APPLICATION = "pytrickle/refresher of 1"


@pytest.mark.parametrize("obstacle", ENDED, ids=["writer", "reader"])
def test_server_gone_in_mid_refresh_is_an_error_and_the_next_refresh_is_fine(
    shop: Shop, obstacle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_settings, "PATIENCE", "60s")
    shop.db.execute(SLOW)
    shop.pt.create_stream_table("report", "SELECT id, slowly(amount) AS amount FROM orders")
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    shop.tick()
    shop.db.execute("INSERT INTO orders VALUES (2, 1, 20)")
    locker = shop.db.connect(autocommit=False)
    locker.execute(obstacle.encode())
    waiting = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s"
    waiting += " AND wait_event_type = 'Lock'"
    with ThreadPoolExecutor(1) as thread:
        refresh = thread.submit(shop.pt.refresh, "report")
        ((pid,),) = wait_for(lambda: shop.db.execute(waiting, APPLICATION), f"{APPLICATION} to be blocked")
        assert shop.db.value("SELECT pg_terminate_backend(%s)", pid)
        with pytest.raises(errors.ConnectionLost) as lost:
            refresh.result(timeout=60)
    locker.rollback()
    assert_explained(lost.value)
    assert shop.rows("report") == {(1, 10)}
    assert shop.pt.refresh("report").rows_inserted == 1
    assert shop.rows("report") == {(1, 10), (2, 20)}
    shop.assert_verified()


def test_lost_snapshot_fails_the_tables_that_still_need_it_and_the_next_tick_is_fine(
    filled: Shop, connect: Callable[..., pytrickle.Client]
) -> None:
    filled = Shop(filled.db, connect(max_concurrent_refreshes=1))
    filled.pt.create_stream_table("second", "SELECT count(*) AS n FROM orders")
    filled.tick()

    def end_snapshot(result: pytrickle.RefreshResult) -> None:
        """Let the server end the session that holds the tick's snapshot."""
        ours = "datname = current_database() AND application_name = 'pytrickle/snapshot'"
        filled.db.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}")

    filled.db.execute("INSERT INTO orders VALUES (2, 1, 20)")
    first, second = filled.pt.tick(end_snapshot)
    assert (first.action, second.action) == ("DIFFERENTIAL", "FAILED")
    assert {result.action for result in filled.pt.tick()} == {"NO_DATA", "DIFFERENTIAL"}
    assert {(row.status, row.last_error) for row in filled.pt.stream_tables()} == {("ACTIVE", None)}


@pytest.fixture
def small_disk(spark: SparkSession) -> Iterator[Shop]:
    """A server that cannot write a file beyond 24 MB, which it takes for a full disk; WAL segments are smaller."""
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A limit within a page makes for the partial write by which PostgreSQL knows a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (24 * 2**20 + 4096, unlimited[1]))
    try:
        server = Server(OLDEST)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    try:
        database = Database(server.create("small"), server.version)
        pytrickle.install(database.dsn)
        with pytrickle.connect(database.dsn, spark=spark) as client:
            yield Shop(database, client)
        database.close()
    finally:
        server.stop()


def test_full_disk_in_staging_is_named_and_nothing_is_half_applied(small_disk: Shop) -> None:
    small_disk.db.execute("CREATE TABLE documents (id int PRIMARY KEY, body text)")
    small_disk.pt.create_stream_table(
        "twice", "SELECT id, body FROM documents UNION ALL SELECT -id, body FROM documents"
    )
    small_disk.tick()
    words = "SELECT string_agg(md5(random()::text || n || d), '') FROM generate_series(1, 32768) AS n"
    small_disk.db.execute(f"INSERT INTO documents SELECT d, ({words}) FROM generate_series(1, 13) AS d")
    with pytest.raises(errors.DatabaseError) as full:
        small_disk.pt.refresh("twice")
    # Later servers report a file that may not grow under another SQLSTATE than a disk that is full.
    assert small_disk.db.version > 15 or (type(full.value), full.value.sqlstate) == (errors.DiskFull, "53100")
    assert_explained(full.value)
    assert small_disk.rows("twice") == set()
    small_disk.db.execute("DELETE FROM documents WHERE id > 5")
    for _ in range(2):
        small_disk.pt.tick()
    assert small_disk.db.value("SELECT count(*) FROM twice") == 10
    small_disk.assert_verified()


def test_error_of_the_write_transaction_leaves_rows_frontier_and_history_alone(filled: Shop) -> None:
    filled.db.execute(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$"
        " BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END $$"
    )
    filled.db.execute("CREATE TRIGGER full_disk AFTER INSERT ON report EXECUTE FUNCTION full_disk()")
    filled.db.execute("ALTER TABLE report ENABLE ALWAYS TRIGGER full_disk")
    filled.load("orders", "12:05", (2, 1, 20))
    frontier = filled.db.execute("SELECT frontier::text FROM pgtrickle.pgt_dependencies")
    with pytest.raises(errors.DiskFull) as full:
        filled.pt.refresh("report")
    assert_explained(full.value)
    assert filled.rows("report") == {(1, 10)}
    assert filled.db.execute("SELECT frontier::text FROM pgtrickle.pgt_dependencies") == frontier
    assert [row.status for row in filled.pt.history("report")] == ["FAILED", "COMPLETED"]
    filled.db.execute("DROP TRIGGER full_disk ON report")
    filled.tick()
    assert filled.rows("report") == {(1, 10), (2, 20)}
    filled.assert_verified()


def test_failure_of_a_refresh_does_not_reach_the_loader(filled: Shop) -> None:
    filled.pt.create_stream_table("shares", "SELECT id, 100 / amount AS share FROM orders")
    filled.load("orders", "12:05", (2, 1, 0))
    (failed,) = (result for result in filled.pt.tick() if result.error)
    assert failed.stream_table == "public.shares"
    filled.load("orders", "12:10", (3, 1, 5))
    assert filled.rows("orders") == {(1, 1, 10), (2, 1, 0), (3, 1, 5)}


def test_a_limit_of_temporary_files_suspends_nothing(db: Database) -> None:
    db.execute("CREATE TABLE orders AS SELECT g AS id, md5(g::text) AS note FROM generate_series(1, 20000) AS g")
    query = "SELECT id, repeat(note, 20) AS note FROM orders ORDER BY 2 LIMIT 20000"
    db.execute("SELECT pgtrickle.create_stream_table('report', %s)", query)
    db.execute("UPDATE pgtrickle.pgt_stream_tables SET consecutive_failures = 20")
    name = db.value("SELECT current_database()")
    for setting in ("work_mem = '64kB'", "temp_file_limit = '512kB'"):
        db.execute(f"ALTER DATABASE {name} SET {setting}")
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        (failed,) = client.tick()
    assert "temp_file_limit" in str(failed.error)
    assert db.execute("SELECT status, last_sqlstate FROM pgtrickle.pgt_stream_tables") == [("ERROR", "SQLSTATE 53400")]
    db.execute(f"ALTER DATABASE {name} RESET temp_file_limit")
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        client.refresh("report")
    assert db.value("SELECT count(*) FROM report") == 20000
