"""The commands that docs/howto/spark.md gives for clusters and Spark Connect do what it says."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest

from benchmarks.engines.standalone import kill
from tests.conftest import Database
from tests.documents import ROOT, blocks
from tests.waiting import wait_for

pytestmark = [pytest.mark.long, pytest.mark.soak]

EXCUSE = "tests/spark/test_recipes.py runs it"
RECIPES = [block.text for block in blocks(ROOT / "docs/howto/spark.md") if block.excuse == EXCUSE]
REFRESHED = "SELECT action, status FROM pgtrickle.pgt_refresh_history ORDER BY refresh_id"


def recipes(word: str) -> list[str]:
    found = [text for text in RECIPES if word in text]
    assert found, word
    return found


def lines(recipe: str) -> list[str]:
    return [line.removeprefix("$ ") for line in recipe.replace("\\\n", "").splitlines()]


@pytest.fixture
def shop(db: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Database:
    """A stream table to be loaded, and the environment of the recipes, whose files go to a place of the test."""
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, amount int)")
    db.execute("INSERT INTO orders SELECT i, i % 5 FROM generate_series(1, 100) AS i")
    query = "SELECT a.amount, count(*) AS n FROM orders a JOIN orders b ON b.id = a.amount GROUP BY a.amount"
    db.execute("SELECT pgtrickle.create_stream_table('report', %s)", query)
    programs = Path(sys.executable).parent
    settings = {"PYTRICKLE_DSN": db.dsn, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    places = dict.fromkeys(("SPARK_WORKER_DIR", "SPARK_LOG_DIR", "SPARK_PID_DIR"), str(tmp_path))
    for name, value in {**settings, **places, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)}.items():
        monkeypatch.setenv(name, value)
    return db


def test_a_standalone_cluster_starts_and_refreshes(shop: Database) -> None:
    port = free_port()
    start, use = (
        text.replace("spark-master:7077", f"127.0.0.1:{port}").replace(
            "spark-master --port 7077", f"127.0.0.1 --port {port}"
        )
        for text in recipes("spark-master")
    )
    home, master, worker = lines(start)
    with program(f"{home}; exec {master}"):
        wait_for(lambda: listens(port), "the master")
        with program(f"{home}; exec {worker}"):
            run(lines(use))
    assert shop.execute(REFRESHED) == [("FULL", "COMPLETED")]


def test_a_server_of_spark_connect_starts_and_refreshes(shop: Database) -> None:
    port = free_port()
    (server,) = recipes("start-connect-server")
    (client,) = recipes("remote(")
    home, start = lines(server.replace("15002", str(port)))
    try:
        run([home, start])
        wait_for(lambda: listens(port), "the server")
        code = client.replace("spark-connect:15002", f"127.0.0.1:{port}").replace("pt.run()", "print(pt.tick())")
        done = subprocess.run([sys.executable, "-c", code], stdout=PIPE, text=True, check=True, timeout=120)
        assert "FULL" in done.stdout
    finally:
        run([home, "$SPARK_HOME/sbin/stop-connect-server.sh"])
    assert shop.execute(REFRESHED) == [("FULL", "COMPLETED")]


def run(commands: list[str]) -> str:
    done = subprocess.run(["bash", "-ec", "\n".join(commands)], stdout=PIPE, text=True, timeout=240)
    assert done.returncode == 0, done.stdout
    return done.stdout


@contextmanager
def program(command: str) -> Iterator[None]:
    process: Any = subprocess.Popen(["bash", "-c", command], stdout=DEVNULL, stderr=DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        kill(process)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
