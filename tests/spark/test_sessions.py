"""Several Spark sessions of one process: none changes another one's settings, or ends the Java of another one."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkValueError
from pyspark.sql import SparkSession

import pytrickle
from pytrickle.compute.spark.gateway import JavaOutput
from pytrickle.compute.spark.run import translated
from pytrickle.compute.spark.session import build_session, forget_session
from pytrickle.config import Settings
from pytrickle.errors import SparkFailed, SparkLost
from tests.conftest import Database
from tests.java import TestSession

pytestmark = pytest.mark.long

LOCAL = Settings(spark_master="local[2]")
OWN = {"spark.sql.session.timeZone": "America/New_York", "spark.sql.ansi.enabled": "false"}


def test_a_session_that_runs_in_the_process_keeps_its_settings(spark: SparkSession) -> None:
    """As that of a notebook, or of a stream beside the refresher."""
    before = {name: spark.conf.get(name) for name in OWN}
    try:
        for name, value in OWN.items():
            spark.conf.set(name, value)
        built = build_session(LOCAL)
        assert [built.conf.get(name) for name in OWN] == ["UTC", "true"]
        assert built.sparkContext is spark.sparkContext
        assert {name: spark.conf.get(name) for name in OWN} == OWN
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def test_rows_are_whole_where_a_session_leaves_out_what_it_groups_by(db: Database, spark: SparkSession) -> None:
    own = spark.newSession()
    own.conf.set("spark.sql.retainGroupColumns", "false")
    query = "SELECT id, v FROM t WHERE v > 0"
    db.execute("CREATE TABLE t (id int, v int)")
    with pytrickle.connect(db.dsn, own, engine="spark") as client:
        client.create_stream_table("positive", query, refresh_mode="DIFFERENTIAL")
        client.refresh("positive")
        db.execute("INSERT INTO t VALUES (1, 7), (1, 7), (2, NULL), (3, 3)")
        assert client.refresh("positive").engine == "spark"
        db.execute("DELETE FROM t WHERE id = 3")
        assert client.refresh("positive").engine == "spark"
    assert db.execute("SELECT * FROM positive") == [(1, 7), (1, 7)]


def test_a_session_that_is_found_lost_later_does_not_end_its_successor(
    spark: SparkSession, test_session: TestSession
) -> None:
    """Two clients of one process share its Java; the second one may find out when the first has started another."""
    SparkContext._gateway.proc.kill()
    with pytest.raises(SparkLost, match=r"its Java ended by signal 9\.(\n|$)"), translated():
        spark.sql("SELECT 1").collect()
    forget_session(spark)
    test_session.running = build_session(LOCAL)
    forget_session(spark)
    assert test_session.running.sql("SELECT 1").toArrow().num_rows == 1


def test_spark_that_stops_by_itself_is_built_anew_and_what_keeps_it_from_starting_is_said(
    db: Database, spark: SparkSession, test_session: TestSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the master of a cluster ends the application; Java goes on."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    db.execute("SELECT pgtrickle.create_stream_table('copied', 'SELECT DISTINCT id FROM t')")
    with pytrickle.connect(db.dsn, engine="spark", spark_master="local[2]") as client:
        assert client.refresh("copied").engine == "spark"
        spark._jsc.sc().stop()
        db.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(SparkLost, match=r"lost: Spark has stopped\.(\n|$)"):
            client.refresh("copied")
        monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
        with pytest.raises(SparkFailed, match="cannot be configured together"):
            build_session(LOCAL)
        monkeypatch.delenv("SPARK_REMOTE")
        with pytest.raises(SparkFailed, match=r"started: Asked to run locally with 0 threads\.(\n|$)"):
            build_session(Settings(spark_master="local[0]"))
        assert client.refresh("copied").engine == "spark"
        assert db.execute("TABLE copied") == [(1,)]
        test_session.running = client._engine.session


def test_spark_that_the_process_stopped_is_left_to_the_process_which_started_it_again(
    db: Database, spark: SparkSession, test_session: TestSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a notebook; PySpark itself keeps nothing of what the Java writes that it starts."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    db.execute("SELECT pgtrickle.create_stream_table('copied', 'SELECT DISTINCT id FROM t')")
    monkeypatch.delattr(SparkContext._gateway, "output")
    with pytrickle.connect(db.dsn, engine="spark", spark_master="local[2]") as client:
        assert client.refresh("copied").engine == "spark"
        spark.stop()
        own = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        db.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(SparkLost, match=r"lost: Spark has stopped\.(\n|$)"):
            client.refresh("copied")
        assert client.refresh("copied").engine == "spark"
        assert db.execute("TABLE copied") == [(1,)]
        assert own.sql("SELECT 1").toArrow().num_rows == 1
        own.stop()
    test_session.running = build_session(LOCAL)


def test_a_session_of_your_own_whose_java_is_gone_is_lost(
    db: Database, spark: SparkSession, test_session: TestSession
) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    db.execute("SELECT pgtrickle.create_stream_table('copied', 'SELECT DISTINCT id FROM t')")
    with pytrickle.connect(db.dsn, engine="spark", spark=spark) as client:
        assert client.refresh("copied").engine == "spark"
        SparkContext._gateway.proc.kill()
        db.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(SparkLost, match=r"its Java ended by signal 9\.(\n|$)"):
            client.refresh("copied")
    forget_session(spark)
    test_session.running = build_session(LOCAL)


def test_what_every_java_writes_is_no_reason_for_its_end() -> None:
    output = JavaOutput()
    output.last.extend(["WARNING: Using incubator modules: jdk.incubator.vector", "Out of memory"])
    assert output.why() == "Out of memory"


@pytest.mark.parametrize(("ended", "kind"), [("by signal 9", SparkLost), (None, SparkFailed)])
def test_what_pyspark_makes_of_a_connection_that_broke_is_seen_through(
    monkeypatch: pytest.MonkeyPatch, ended: str | None, kind: type[Exception]
) -> None:
    monkeypatch.setattr("pytrickle.compute.spark.run.how_java_ended", lambda: ended)
    with pytest.raises(kind), translated():
        try:
            raise ConnectionRefusedError(111, "Connection refused")
        except ConnectionRefusedError as error:
            raise PySparkValueError("[CANNOT_PARSE_DATATYPE] Unable to parse datatype.") from error


def test_a_call_that_java_did_not_answer_is_a_lost_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytrickle.compute.spark.run.how_java_ended", lambda: "by signal 9")
    with pytest.raises(SparkLost, match=r"its Java ended by signal 9\.(\n|$)"), translated():
        raise Py4JError("An error occurred while calling o55.set")
