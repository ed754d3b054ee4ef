"""Bad input and failure through Python: the right class, one sentence, a hint, and untouched data."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import pytrickle
from pytrickle import errors, migrate
from pytrickle.apply.commit import LOCK_CLASS
from pytrickle.errors import PytrickleError
from tests.acceptance.conftest import Shop, advance
from tests.conftest import Database
from tests.servers import OLDEST, Server
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime.fromisoformat("2026-01-01 12:00+00:00")


@pytest.fixture
def filled(shop: Shop) -> Shop:
    """A filled stream table `report` over orders, and a watermark group that orders belong to."""
    shop.pt.create_watermark_group("pipeline", ["orders", "order_lines"])
    shop.load("orders", "12:00", (1, 1, 10))
    shop.pt.create_stream_table("report", "SELECT id, amount FROM orders")
    shop.tick()
    return shop


def catalog(db: Database) -> dict[str, list[Any]]:
    """Return all that a refused call could have left behind."""
    queries = {
        "tables": "SELECT pgt_id, pgt_name, status, watermark_gating, schedule FROM pgtrickle.pgt_stream_tables",
        "groups": "SELECT group_name, sources::text, tolerance FROM pgtrickle.pgt_watermark_groups",
        "watermarks": "SELECT source_name, watermark, cut::text FROM pgtrickle.pgt_watermarks",
        "history": "SELECT source_relid::text, watermark FROM pgtrickle.pgt_watermark_history",
        "captured": "SELECT source_name, captured_columns FROM pgtrickle.pgt_change_tracking",
        "relations": "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'v') AND oid > 16384",
        "triggers": "SELECT tgrelid::regclass::text, tgname::text FROM pg_trigger",
        "report": "SELECT * FROM report",
        "orders": "SELECT * FROM orders",
    }
    return {name: sorted(db.execute(query), key=repr) for name, query in queries.items()}


def assert_explained(error: PytrickleError) -> None:
    """An error is one plain sentence, and its hint says what to do."""
    assert error.message and "\n" not in error.message
    assert "Traceback" not in error.message and "psycopg" not in error.message
    assert error.hint and error.hint != error.message


Call = Callable[[pytrickle.Client], object]


def create(query: str, name: str = "other", **options: Any) -> Call:
    return lambda pt: pt.create_stream_table(name, query, **options)


REFUSED: dict[str, tuple[type[PytrickleError], str | None, Call]] = {
    "unknown table in a query": (errors.InvalidArgument, "42P01", create("SELECT * FROM nowhere")),
    "unknown column in a query": (errors.QueryRefused, "42703", create("SELECT nothing FROM orders")),
    "syntax error": (errors.QueryRefused, "42601", create("SELEC id FROM orders")),
    "two statements": (errors.QueryRefused, "42601", create("SELECT 1; DROP TABLE orders")),
    "not a query": (errors.QueryRefused, "42601", create("DELETE FROM orders")),
    "volatile function": (errors.QueryRefused, "0A000", create("SELECT id, random() AS r FROM orders")),
    "system table": (
        errors.NotDifferentiable,
        "0A000",
        create("SELECT relname FROM pg_class", refresh_mode="DIFFERENTIAL"),
    ),
    "no delta rule": (
        errors.NotDifferentiable,
        None,
        create("SELECT id, row_number() OVER (ORDER BY id) AS n FROM orders", refresh_mode="DIFFERENTIAL"),
    ),
    "name that is taken": (errors.StreamTableExists, "42P07", create("SELECT id FROM orders", "report")),
    "unknown schema": (errors.InvalidArgument, "3F000", create("SELECT id FROM orders", "nowhere.other")),
    "bad mode": (errors.InvalidArgument, "22023", create("SELECT id FROM orders", watermark_gating="sometimes")),
    "bad refresh mode": (errors.InvalidArgument, "22023", create("SELECT id FROM orders", refresh_mode="OFTEN")),
    "bad schedule": (errors.InvalidArgument, "22023", create("SELECT id FROM orders", schedule="soon")),
    "hold_back over a table that shows more": (
        errors.InvalidArgument,
        "55000",
        create("SELECT id FROM report", watermark_gating="hold_back"),
    ),
    "alter an unknown table": (
        errors.UnknownStreamTable,
        "42704",
        lambda pt: pt.alter_stream_table("nothing", schedule="1 hour"),
    ),
    "drop an unknown table": (errors.UnknownStreamTable, "42704", lambda pt: pt.drop_stream_table("nothing")),
    "drop an ordinary table": (errors.UnknownStreamTable, "42704", lambda pt: pt.drop_stream_table("orders")),
    "refresh an unknown table": (errors.UnknownStreamTable, "42704", lambda pt: pt.refresh("nothing")),
    "explain an unknown table": (errors.UnknownStreamTable, "42704", lambda pt: pt.explain("nothing")),
    "history of an unknown table": (errors.UnknownStreamTable, "42704", lambda pt: pt.history("nothing")),
    "watermark of an unknown table": (
        errors.InvalidArgument,
        "42P01",
        lambda pt: pt.advance_watermark("nothing", NOON),
    ),
    "watermark of a stream table": (errors.PytrickleError, "42809", lambda pt: pt.advance_watermark("report", NOON)),
    "watermark moved back": (
        errors.WatermarkMovedBack,
        "22000",
        lambda pt: pt.advance_watermark("orders", NOON - timedelta(microseconds=1)),
    ),
    "no watermark": (errors.InvalidArgument, "22004", lambda pt: pt.advance_watermark("orders", None)),  # type: ignore[arg-type]
    "watermark before all time": (
        errors.InvalidArgument,
        "22023",
        lambda pt: pt.advance_watermark("orders", datetime.min.replace(tzinfo=NOON.tzinfo)),
    ),
    "negative tolerance": (
        errors.InvalidArgument,
        "22023",
        lambda pt: pt.create_watermark_group("other", ["orders"], timedelta(seconds=-1)),
    ),
    "altered to a negative tolerance": (
        errors.InvalidArgument,
        "22023",
        lambda pt: pt.alter_watermark_group("pipeline", tolerance="-1 second"),
    ),
    "duplicate group": (errors.InvalidArgument, "42710", lambda pt: pt.create_watermark_group("pipeline", ["orders"])),
    "unknown group": (
        errors.UnknownWatermarkGroup,
        "42704",
        lambda pt: pt.alter_watermark_group("nothing", ["orders"]),
    ),
    "dropped unknown group": (errors.UnknownWatermarkGroup, "42704", lambda pt: pt.drop_watermark_group("nothing")),
    "repeated source in a group": (
        errors.InvalidArgument,
        "22023",
        lambda pt: pt.create_watermark_group("other", ["orders", "public.orders"]),
    ),
    "unknown source in a group": (
        errors.InvalidArgument,
        "42P01",
        lambda pt: pt.create_watermark_group("other", ["orders", "nothing"]),
    ),
    "empty group": (errors.InvalidArgument, "22023", lambda pt: pt.create_watermark_group("other", [])),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_in_plain_words_and_changes_nothing(filled: Shop, case: str) -> None:
    kind, sqlstate, call = REFUSED[case]
    before = catalog(filled.db)
    with pytest.raises(kind) as refused:
        call(filled.pt)
    assert refused.value.sqlstate == sqlstate
    assert_explained(refused.value)
    assert catalog(filled.db) == before
    assert filled.tick()["report"].action == "NO_DATA"


def test_temporary_table_is_refused(filled: Shop) -> None:
    filled.pt._connection().execute("CREATE TEMP TABLE passing (id int)")
    before = catalog(filled.db)
    with pytest.raises(errors.QueryRefused, match="passing") as refused:
        filled.pt.create_stream_table("other", "SELECT id FROM passing")
    assert refused.value.sqlstate == "0A000"
    assert_explained(refused.value)
    assert catalog(filled.db) == before


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


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO report VALUES (7, 7)",
        "UPDATE report SET amount = 7",
        "DELETE FROM report",
        "TRUNCATE report",
        "COPY report FROM STDIN",
        "MERGE INTO report USING orders ON false WHEN NOT MATCHED THEN INSERT VALUES (7, 7)",
    ],
)
def test_direct_writes_to_a_stream_table_are_refused(filled: Shop, statement: str) -> None:
    with filled.db.connect() as connection, pytest.raises(psycopg.Error) as refused:
        if statement.startswith("COPY"):
            with connection.cursor().copy(statement) as copy:
                copy.write("7\t7\n")
        else:
            connection.execute(statement)
    assert refused.value.sqlstate == "55000"
    assert refused.value.diag.message_hint == "Change the tables its defining query reads."
    assert filled.rows("report") == {(1, 10)}


def test_role_without_rights_is_told_which_grant_it_lacks(filled: Shop) -> None:
    stranger = filled.db.create_role("stranger")
    with pytrickle.connect(f"{filled.db.dsn}?user={stranger}") as pt:
        assert [row.stream_table for row in pt.stream_tables()] == ["public.report"]
        for call in (
            lambda: pt.create_stream_table("other", "SELECT id FROM orders"),
            lambda: pt.advance_watermark("orders", NOON),
            lambda: pt.drop_stream_table("report"),
            lambda: pt.refresh("report"),
            lambda: pt.tick(),
        ):
            with pytest.raises(errors.InsufficientPrivilege) as refused:
                call()
            assert refused.value.sqlstate == "42501"
            assert_explained(refused.value)
    assert filled.rows("report") == {(1, 10)}


def test_loader_needs_insert_on_its_table_and_nothing_on_the_catalog(filled: Shop) -> None:
    loader = filled.db.create_role("loader")
    filled.db.execute("GRANT INSERT ON orders TO loader")
    with psycopg.connect(filled.db.dsn, user=loader) as connection:
        connection.execute("INSERT INTO orders VALUES (2, 1, 20)")
        advance(connection, "orders", "12:05")
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute("UPDATE pgtrickle.pgt_watermarks SET watermark = 'infinity'")
    assert filled.tick()["report"].rows_inserted == 1
    with pytrickle.connect(f"{filled.db.dsn}?user={loader}") as pt:
        pt.advance_watermark("orders", NOON + timedelta(minutes=10))
        assert [row.advanced_by for row in pt.watermarks()] == ["loader"]


def test_database_without_catalog_says_what_to_run(empty_db: Database) -> None:
    with pytest.raises(errors.NotInstalled) as refused, pytrickle.connect(empty_db.dsn):
        pass
    assert refused.value.hint == "Run pytrickle install against this database."


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        ("UPDATE pgtrickle.pgt_schema_version SET checksum = 'other' WHERE version = 0", "Run pytrickle install"),
        ("INSERT INTO pgtrickle.pgt_schema_version VALUES (9000, 'later', 'x')", "Upgrade the package"),
    ],
    ids=["older", "newer"],
)
def test_catalog_of_another_version_is_refused_with_the_remedy(db: Database, change: str, remedy: str) -> None:
    db.execute(change)
    with pytest.raises(errors.CatalogVersionMismatch, match="version") as refused, pytrickle.connect(db.dsn):
        pass
    assert remedy in (refused.value.hint or "")


def test_server_that_is_too_old_is_refused(empty_db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "OLDEST_SERVER", empty_db.version + 1)
    with pytest.raises(errors.MigrationError, match="too old") as refused:
        pytrickle.install(empty_db.dsn)
    assert refused.value.sqlstate == "0A000"
    assert_explained(refused.value)
    assert empty_db.value("SELECT to_regnamespace('pgtrickle') IS NULL")


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
    with pytrickle.connect(filled.db.dsn) as pt:
        with pytest.raises(errors.JavaMissing) as refused:
            pt.refresh("report")
        assert_explained(refused.value)
        (result,) = pt.tick()
        assert (result.action, result.error) == ("FAILED", refused.value.message)
    assert filled.rows("report") == {(1, 10)}
    for _ in range(2):
        filled.tick()
    assert filled.rows("report") == {(1, 10), (2, 20)}
    assert filled.pt.stream_tables()[0].status == "ACTIVE"


def test_missing_driver_jar_is_named(filled: Shop, tmp_path: Any) -> None:
    filled.db.execute("INSERT INTO orders VALUES (2, 1, 20)")
    with (
        pytrickle.connect(filled.db.dsn, jdbc_jar=str(tmp_path / "none.jar")) as pt,
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
CREATE FUNCTION slowly(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(4711);
    RETURN n;
END
$$
"""
# Whose session the server ends while it waits for which lock, and what the caller gets to see.
ENDED: dict[str, tuple[str, type[PytrickleError]]] = {
    f"SELECT pg_advisory_xact_lock({LOCK_CLASS}, 1)": ("pytrickle/refresher", errors.ConnectionLost),
    "SELECT pg_advisory_xact_lock(4711)": ("pytrickle/spark", errors.SparkFailed),
}


@pytest.mark.parametrize("obstacle", ENDED, ids=["writer", "reader"])
def test_server_gone_in_mid_refresh_is_an_error_and_the_next_refresh_is_fine(shop: Shop, obstacle: str) -> None:
    application, kind = ENDED[obstacle]
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
        ((pid,),) = wait_for(lambda: shop.db.execute(waiting, application), f"{application} to be blocked")
        assert shop.db.value("SELECT pg_terminate_backend(%s)", pid)
        with pytest.raises(kind) as lost:
            refresh.result(timeout=60)
    locker.rollback()
    assert_explained(lost.value)
    assert shop.rows("report") == {(1, 10)}
    assert shop.pt.refresh("report").rows_inserted == 1
    assert shop.rows("report") == {(1, 10), (2, 20)}
    shop.assert_verified()


def test_lost_snapshot_fails_the_tables_that_still_need_it_and_the_next_tick_is_fine(filled: Shop) -> None:
    filled.pt.create_stream_table("second", "SELECT count(*) AS n FROM orders")
    filled.tick()

    def end_snapshot(result: pytrickle.RefreshResult) -> None:
        """Let the server end the session that holds the tick's snapshot."""
        ours = "datname = current_database() AND application_name = 'pytrickle/snapshot'"
        filled.db.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}")

    first, second = filled.pt.tick(end_snapshot)
    assert (first.action, second.action) == ("NO_DATA", "FAILED")
    assert {result.action for result in filled.pt.tick()} == {"NO_DATA"}
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
