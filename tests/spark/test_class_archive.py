"""Spark is started from an archive of its classes, which a process of its own writes after the first start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Database
from tests.waiting import wait_for

pytestmark = [pytest.mark.long, pytest.mark.soak]

TICK = [str(Path(sys.executable).with_name("pytrickle")), "tick", "--engine", "spark"]
ARCHIVED = "source: shared objects file (top)"


def tick(db: Database, directory: Path, **environment: str) -> str:
    """Make a tick in a process of its own; return what it and its Java say."""
    own = {"XDG_CACHE_HOME": str(directory), "PYTRICKLE_DSN": db.dsn, "SPARK_SUBMIT_OPTS": "", **environment}
    done = subprocess.run(TICK, env=os.environ | own, capture_output=True, text=True, timeout=300, cwd=directory)
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_for_archive(directory: Path) -> Path:
    found: list[Path] = wait_for(lambda: list(directory.glob("pytrickle/*.jsa")), "the archive", patience=300)
    return found[0]


def test_spark_starts_from_the_archive_that_the_first_process_has_written(db: Database, tmp_path: Path) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, amount int)")
    db.execute("INSERT INTO orders SELECT i, i % 5 FROM generate_series(1, 100) AS i")
    query = "SELECT a.amount, count(*) AS n FROM orders a JOIN orders b ON b.id = a.amount GROUP BY a.amount"
    db.execute("SELECT pgtrickle.create_stream_table('report', %s)", query)
    log = tmp_path / "loaded.txt"
    options = {"SPARK_SUBMIT_OPTS": f"-Xlog:class+load:file={log}:none"}
    assert "spark" in tick(db, tmp_path, **options)
    assert ARCHIVED not in log.read_text()
    archive = wait_for_archive(tmp_path)
    log.unlink()
    db.execute("INSERT INTO orders VALUES (101, 3)")
    assert "spark" in tick(db, tmp_path, **options)
    assert log.read_text().count(ARCHIVED) > 5000
    archive.chmod(0o600)
    os.truncate(archive, archive.stat().st_size // 2)  # Java dies of it.
    db.execute("INSERT INTO orders VALUES (102, 3)")
    assert "spark" in tick(db, tmp_path, **options)
    assert ARCHIVED not in log.read_text()
    assert wait_for_archive(tmp_path) == archive
    assert db.execute("SELECT status FROM pgtrickle.pgt_refresh_history") == [("COMPLETED",)] * 3
