"""A standalone cluster of a master and two workers, each a process of its own: its executors compute the refreshes."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pyspark
import pytest

from tests.acceptance.slow import LOCK, SLOWLY
from tests.conftest import Database
from tests.documents import ROOT
from tests.equivalence.oracle import differences
from tests.waiting import wait_for

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).with_name("cluster_session.py")
# How the tests start the driver's Java; a cluster's other processes do not live long either.
QUICK = os.environ["SPARK_SUBMIT_OPTS"]
EXECUTOR = b"CoarseGrainedExecutorBackend"
SPARK_CLASS = Path(pyspark.__file__).with_name("bin") / "spark-class"
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


@dataclass
class Cluster:
    """The processes of a cluster, and the driver that refreshes through it."""

    master: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def executors(self) -> list[int]:
        """Find the process ids of the executors, which share the process group of the worker that started them."""
        groups = {process.pid for process in self.processes[1:]}
        executors = [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _runs(entry, EXECUTOR)]
        return [pid for pid in executors if os.getpgid(pid) in groups]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    port = _free_port()
    with ExitStack() as stack:
        made = Cluster(f"spark://127.0.0.1:{port}")
        start = _starter(stack, tmp_path, made)
        start("Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        wait_for(lambda: _listens(port), "the master")
        for _ in range(2):
            start("Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0", made.master)
        yield made


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

        _kill(cluster.processes[1])
        _change(db)
        assert tick()["results"] == [["public.report", "DIFFERENTIAL", "spark", None]], "a worker is lost"
        _assert_equal(db)

        _kill(cluster.processes[0])
        _change(db)
        assert tick()["results"] == [["public.report", "DIFFERENTIAL", "spark", None]], "the master is lost"
        _assert_equal(db)


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
def _driver(db: Database, cluster: Cluster) -> Iterator[Callable[..., Any]]:
    executors = shlex.join(["--conf", f"spark.executor.extraJavaOptions={QUICK}", "pyspark-shell"])
    own = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": executors}
    command = [sys.executable, str(PROGRAM), db.dsn, cluster.master]
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


def _starter(stack: ExitStack, home: Path, made: Cluster) -> Callable[..., None]:
    places = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(home), "SPARK_LOG_DIR": str(home)}
    own = {**os.environ, "SPARK_DAEMON_JAVA_OPTS": QUICK, **places}

    def start(role: str, *arguments: str) -> None:
        command = [str(SPARK_CLASS), f"org.apache.spark.deploy.{role.lower()}.{role}", *arguments]
        log = stack.enter_context((home / f"{role}{len(made.processes)}.log").open("wb"))
        process = subprocess.Popen(command, env=own, stdout=log, stderr=log, start_new_session=True)
        stack.callback(_kill, process)
        made.processes.append(process)

    return start


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill one of the cluster's processes and what it has started, unless that has ended."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=20)


def _runs(entry: Path, program: bytes) -> bool:
    try:
        return program in (entry / "cmdline").read_bytes()
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
