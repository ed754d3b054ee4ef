"""A standalone cluster of a master and two workers, each a process of its own: its executors compute the refreshes."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from benchmarks.engines.standalone import Cluster, kill, standalone_cluster
from pytrickle.compute.spark.reach import EXECUTORS_HINT
from tests.acceptance.slow import LOCK, SLOWLY
from tests.conftest import Database
from tests.documents import ROOT
from tests.equivalence.oracle import differences
from tests.programs import printed_by
from tests.waiting import wait_for

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).with_name("cluster_session.py")
REACH_SESSION = Path(__file__).with_name("reach_session.py")
# How the tests start the driver's Java; a cluster's other processes do not live long either.
QUICK = os.environ["SPARK_SUBMIT_OPTS"]
JOINED = (
    "SELECT c.region, count(*) AS n, sum(o.amount) AS a FROM orders o JOIN customers c USING (customer)"
    " WHERE slowly(o.amount) >= 0 GROUP BY c.region"
)
TABLES = """
CREATE TABLE customers (customer int PRIMARY KEY, region int);
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int) WITH (fillfactor = 10);
INSERT INTO customers SELECT i, i % 7 FROM generate_series(1, 500) AS i;
INSERT INTO orders SELECT i, i % 500 + 1, i % 89 FROM generate_series(1, 60000) AS i
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("SPARK_DAEMON_JAVA_OPTS", QUICK)
    with standalone_cluster(tmp_path, workers=2) as started:
        yield started


def test_a_cluster_computes_and_outlives_executors_workers_and_its_master(db: Database, cluster: Cluster) -> None:
    for statement in (SLOWLY, TABLES, "VACUUM ANALYZE"):
        db.execute(statement)
    db.execute("SELECT pgtrickle.create_stream_table('report', %s, refresh_mode => 'DIFFERENTIAL')", JOINED)
    with _driver(db, cluster) as tick:
        first = tick()
        assert first["results"] == [["public.report", "FULL", "spark", None]]
        assert len(first["tasks"]) == 2 and all(first["tasks"]), "both executors read"
        _assert_equal(db)

        _kill_an_executor_while_it_reads(db, cluster, tick)

        kill(cluster.processes[1])
        _change(db)
        assert tick()["results"] == [["public.report", "DIFFERENTIAL", "spark", None]], "a worker is lost"
        _assert_equal(db)

        kill(cluster.processes[0])
        _change(db)
        assert tick()["results"] == [["public.report", "DIFFERENTIAL", "spark", None]], "the master is lost"
        _assert_equal(db)


@pytest.mark.repeats
def test_a_refresh_that_waits_for_executors_in_vain_fails_and_is_made_up_for(db: Database, cluster: Cluster) -> None:
    for statement in (SLOWLY, TABLES, "VACUUM ANALYZE"):
        db.execute(statement)
    db.execute("SELECT pgtrickle.create_stream_table('report', %s, refresh_mode => 'DIFFERENTIAL')", JOINED)
    with _driver(db, cluster, patience=3) as tick:
        assert tick()["results"] == [["public.report", "FULL", "spark", None]]
        for worker in cluster.processes[1:]:
            kill(worker)
        wait_for(lambda: not cluster.executors(), "the end of the executors")
        _change(db)
        ((_, action, _, error),) = tick()["results"]
        assert (action, error) == ("FAILED", f"The cluster {cluster.master} has had no executor for 3 s.")
        cluster.add_worker()
        done = wait_for(lambda: [each for each in tick()["results"] if each[1] != "FAILED"], "a new executor")
        assert done == [["public.report", "DIFFERENTIAL", "spark", None]]
        _assert_equal(db)


@pytest.mark.repeats
def test_executors_that_cannot_connect_say_so_in_one_sentence(db: Database, cluster: Cluster) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    db.execute("SELECT pgtrickle.create_stream_table('copied', 'SELECT id FROM t')")
    said, hint = printed_by(REACH_SESSION, db.dsn, cluster.master)
    sentence = "Spark's executors cannot connect to the database: The connection attempt failed."
    assert said == f"{sentence} (UnknownHostException: 127.0.0.1)"
    assert hint == EXECUTORS_HINT
    assert db.value("SELECT last_error_retryable FROM pgtrickle.pgt_stream_tables")


def _kill_an_executor_while_it_reads(db: Database, cluster: Cluster, tick: Callable[..., Any]) -> None:
    _change(db)
    with db.connect() as holder, holder.transaction():
        holder.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
        answer = tick(wait=False)
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()"
        wait_for(lambda: db.value(waiting), "an executor that reads")
        reading = cluster.executors()
        assert reading
        for executor in reading:
            os.kill(executor, signal.SIGKILL)
        wait_for(lambda: not {*reading} & {*cluster.executors()}, "the end of the executors")
    assert answer()["results"] == [["public.report", "DIFFERENTIAL", "spark", None]], "executors are lost"
    _assert_equal(db)


def _change(db: Database) -> None:
    db.execute("UPDATE orders SET amount = amount + 1 WHERE id % 1000 = 7")


def _assert_equal(db: Database) -> None:
    with db.connect() as connection:
        assert not differences(connection, "report", JOINED, True)


@contextmanager
def _driver(db: Database, cluster: Cluster, patience: int = 180) -> Iterator[Callable[..., Any]]:
    executors = shlex.join(["--conf", f"spark.executor.extraJavaOptions={QUICK}", "pyspark-shell"])
    own = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": executors}
    command = [sys.executable, str(PROGRAM), db.dsn, cluster.master, str(patience)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=own) as process:
        assert process.stdin and process.stdout
        requests, answers = process.stdin, process.stdout

        def tick(wait: bool = True) -> Any:
            requests.write("tick\n")
            requests.flush()
            return _answer(answers) if wait else lambda: _answer(answers)

        try:
            yield tick
        finally:
            process.kill()


def _answer(answers: IO[str]) -> Any:
    line = answers.readline()
    assert line, "the driver has ended"
    return json.loads(line)
