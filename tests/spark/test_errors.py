"""What Spark fails with becomes one sentence that names the cause, not what awaited it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

import pytrickle
from pytrickle.compute.spark.jdbc import PinnedReader
from pytrickle.compute.spark.run import SparkEngine, translated
from pytrickle.database import exported_snapshot, jdbc_target
from pytrickle.database.messages import SNAPSHOT_GONE
from pytrickle.errors import Canceled, ConnectionLost, EvaluationFailed, SparkFailed
from tests.conftest import Database
from tests.repeats import on_both_servers
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_sentence_is_the_cause(spark: SparkSession) -> None:
    failing = spark.range(10).repartition(2).selectExpr("raise_error('disk failure') AS v").groupBy("v").count()
    with pytest.raises(SparkFailed) as failed, translated():
        failing.toArrow()
    said = "Spark could not compute the refresh: [USER_RAISED_EXCEPTION] disk failure SQLSTATE: P0001"
    assert failed.value.message == said


def test_value_that_reads_like_a_lack_of_memory_is_a_value(db: Database, spark: SparkSession) -> None:
    db.execute("CREATE TABLE notes (note text)")
    db.execute("INSERT INTO notes VALUES ('java.lang.OutOfMemoryError')")
    with exported_snapshot(db.dsn) as snapshot, pytest.raises(EvaluationFailed) as failed, translated():
        reader = PinnedReader(spark, jdbc_target(db.connect()), snapshot.name, ())
        reader.read("SELECT CAST(note AS int) AS number FROM public.notes").toArrow()
    refusal = 'invalid input syntax for type integer: "java.lang.OutOfMemoryError"'
    assert failed.value.message == f"Spark could not compute the refresh: {refusal}"


# Not who asks for the columns of what is read, which is over at once.
SLEEPING = "FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND application_name = 'pytrickle/spark'"


def _while_it_reads(db: Database, spark: SparkSession, meanwhile: Callable[[], object]) -> None:
    """Have Spark read something that takes minutes, and do something else as soon as it does."""

    def act() -> None:
        wait_for(lambda: db.value(f"SELECT count(*) {SLEEPING}") == 1, "Spark to read")
        meanwhile()

    beside = Thread(target=act)
    beside.start()
    try:
        with exported_snapshot(db.dsn) as snapshot, translated():
            PinnedReader(spark, jdbc_target(db.connect()), snapshot.name, ()).read(
                "SELECT id, pg_sleep(300)::text AS slept FROM generate_series(1, 2) AS id"
            ).toArrow()
    finally:
        beside.join()


def test_a_canceled_statement_is_told_of_as_anywhere_else(db: Database, spark: SparkSession) -> None:
    with pytest.raises(Canceled) as failed:
        _while_it_reads(db, spark, lambda: db.execute(f"SELECT pg_cancel_backend(pid) {SLEEPING}"))
    assert failed.value.message == "canceling statement due to user request" and failed.value.retryable


def test_a_session_that_was_ended_is_a_lost_connection(db: Database, spark: SparkSession) -> None:
    with pytest.raises(ConnectionLost, match="terminating connection due to administrator command") as failed:
        _while_it_reads(db, spark, lambda: db.execute(f"SELECT pg_terminate_backend(pid) {SLEEPING}"))
    assert failed.value.retryable


def test_a_canceled_job_is_canceled(db: Database, spark: SparkSession) -> None:
    with pytest.raises(Canceled) as failed:
        _while_it_reads(db, spark, spark.sparkContext.cancelAllJobs)
    assert failed.value.message == "The Spark job of the refresh was canceled."


def test_an_interrupt_is_none_of_sparks_errors() -> None:
    """It cancels its jobs then, and reports those from its clean-up, so that the interrupt would be lost."""
    with pytest.raises(KeyboardInterrupt), translated():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise PySparkException("[SPARK_JOB_CANCELLED] Job 1 cancelled") from None


@on_both_servers
def test_a_snapshot_that_is_gone_is_a_lost_connection(every_db: Database, spark: SparkSession) -> None:
    """As where the session that exported it was ended, or the server failed over."""
    with exported_snapshot(every_db.dsn) as snapshot:
        name = snapshot.name
    with pytest.raises(ConnectionLost, match="session that holds the snapshot") as failed, translated(name):
        PinnedReader(spark, jdbc_target(every_db.connect()), name, ()).read("SELECT 1 AS one").toArrow()
    assert failed.value.retryable and failed.value.hint


def test_a_snapshot_whose_transaction_ends_meanwhile_is_a_lost_connection() -> None:
    for said in SNAPSHOT_GONE:
        with pytest.raises(ConnectionLost), translated():
            raise PySparkException(f"o.PSQLException: ERROR: {said}\n  Detail: The source process ended.")


HOLDERS = "pid <> pg_backend_pid() AND datname = current_database() AND state = 'idle in transaction' AND backend_xmin "


def test_after_a_lost_snapshot_the_changes_are_taken_in_as_if_nothing_had_been(
    db: Database, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute("CREATE TABLE sales (id int, amount int); INSERT INTO sales SELECT n, n FROM generate_series(1, 9) AS n")
    with pytrickle.connect(db.dsn, spark=spark, direct_delta_rows=0) as client:
        client.create_stream_table("totals", "SELECT id % 2 AS odd, sum(amount) AS s FROM sales GROUP BY 1")
        client.tick()
        db.execute("INSERT INTO sales VALUES (10, 10)")
        compute = SparkEngine.compute

        def lose(*arguments: Any) -> Any:
            db.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {HOLDERS} IS NOT NULL")
            return compute(*arguments)

        with monkeypatch.context() as patched:
            patched.setattr(SparkEngine, "compute", lose)
            with suppress(ConnectionLost):
                (lost,) = client.tick()
                assert "A session" in str(lost.error) or "session that holds the snapshot" in str(lost.error)
        db.execute("UPDATE pgtrickle.pgt_stream_tables SET retry_at = NULL")
        (result,) = client.tick()
        assert (result.action, result.error) == ("DIFFERENTIAL", None)
        assert client.verify("totals").matches
