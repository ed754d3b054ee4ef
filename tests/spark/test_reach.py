"""Spark that cannot connect to the database where psycopg can: one sentence that says who could not, and a remedy."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import pytrickle
from pytrickle.compute.spark.jdbc import PinnedReader
from pytrickle.compute.spark.master import require_master
from pytrickle.compute.spark.reach import DRIVER_HINT
from pytrickle.compute.spark.run import translated
from pytrickle.config import Settings
from pytrickle.database import JdbcTarget, jdbc_target
from pytrickle.errors import DatabaseOutOfReach, SparkCannotConnect, SparkFailed
from pytrickle.inspect.doctor.spark import read_pinned
from tests.conftest import Database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_driver_that_cannot_connect_says_so_and_may_try_again(db: Database, spark: SparkSession) -> None:
    known = jdbc_target(db.connect())
    closed = JdbcTarget("jdbc:postgresql://127.0.0.1:1/shop", known.properties)
    with pytest.raises(SparkCannotConnect) as failed, translated():
        PinnedReader(spark, closed, "1-1-1", ()).read("SELECT 1 AS one").toArrow()
    assert failed.value.message.startswith("Spark cannot connect to the database: Connection to 127.0.0.1:1 refused.")
    assert (failed.value.hint, failed.value.retryable, failed.value.sqlstate) == (DRIVER_HINT, True, "08001")


# Nobody answers there; a session of one's own is asked for its master only.
ELSEWHERE = "spark://192.0.2.77:7077"
BROUGHT = SimpleNamespace(conf={"spark.master": ELSEWHERE})


@pytest.mark.parametrize("session", [None, BROUGHT], ids=["built", "brought"])
def test_an_address_that_leads_executors_to_themselves_is_refused_before_spark_starts(
    db: Database, monkeypatch: pytest.MonkeyPatch, session: Any
) -> None:
    """It is the machine's fault, so no stream table is booked as failed."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    with pytrickle.connect(db.dsn, session, engine="spark", spark_master=ELSEWHERE) as client:
        client.create_stream_table("copied", "SELECT id FROM t")
        with pytest.raises(DatabaseOutOfReach, match=r"executors of spark://192\.0\.2\.77:7077 cannot reach"):
            client.tick()
        assert client.history() == ()


def test_a_master_that_does_not_answer_is_told_before_spark_starts(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark itself would go on trying for more than a minute; where one of several masters answers, it is tried."""
    monkeypatch.setattr("pytrickle.compute.spark.session._running", lambda: None)
    monkeypatch.setattr("pytrickle.compute.spark.session.start_java", lambda *_: pytest.fail("Java was started."))
    silent = "spark://127.0.0.1:1,127.0.0.1:2"
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    with pytrickle.connect(db.dsn, engine="spark", spark_master=silent, class_archive=False) as client:
        client.create_stream_table("copied", "SELECT id FROM t")
        with pytest.raises(SparkFailed) as failed:
            client.tick()
    said = f"The Spark session could not be started: no master answers at {silent}: Connection refused."
    assert failed.value.message == said
    assert "PYTRICKLE_SPARK_MASTER" in str(failed.value.hint)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        require_master(f"spark://127.0.0.1:1,127.0.0.1:{listener.getsockname()[1]}")


def test_the_doctor_says_it_too(db: Database) -> None:
    with pytest.raises(DatabaseOutOfReach):
        read_pinned(Settings(db.dsn, spark_master=ELSEWHERE))
