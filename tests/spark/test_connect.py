"""Spark Connect: the engine needs nothing but the DataFrame API."""

import subprocess
import sys
from pathlib import Path

from tests.conftest import Database

PROGRAM = Path(__file__).with_name("connect_session.py")


def test_refreshes_run_on_spark_connect(db: Database) -> None:
    db.execute("CREATE TABLE t (k int, v int)")
    db.execute("CREATE TABLE u (k int PRIMARY KEY, name text)")
    db.execute("INSERT INTO t VALUES (1, 1), (2, 2); INSERT INTO u VALUES (1, 'one'), (2, NULL)")
    command = [sys.executable, str(PROGRAM), db.dsn]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=PROGRAM.parents[2])
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [
        "postgresql public.by_name DIFFERENTIAL True",
        "postgresql public.joined DIFFERENTIAL True",
        "spark public.by_name DIFFERENTIAL True",
        "spark public.joined DIFFERENTIAL True",
        "pyspark.sql.connect.session",
    ]
