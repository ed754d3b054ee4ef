"""A stream of changes that is killed at any step of a batch goes on from its checkpoint: each change arrives once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import TEMPLATE, Database, fresh
from tests.documents import ROOT
from tests.repeats import first
from tests.servers import OLDEST, Server
from tests.spark.feeds import COPY, SOURCE, changes, newest, wanted, work, write_copy, write_parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

STAGED, COMMITTED = "staged", "committed by the sink"
STEPS = ("read", "before its end is known", "planned", "before the feed is told", "the feed is told")
# Spark's own commit of a batch that Parquet has is removed by hand: nothing can be called between the two.
IN_PARQUET = (*STEPS, COMMITTED)
IN_DATABASE = (*STEPS, STAGED, COMMITTED)
PATIENCE = 240


@pytest.fixture
def copy(servers: Callable[[int], Server]) -> Iterator[Database]:
    """Another database, in which changes are collected."""
    with fresh(servers(OLDEST), TEMPLATE) as database:
        database.execute(COPY)
        yield database


@pytest.mark.parametrize("step", first(0, IN_PARQUET, then=1))
def test_each_change_is_in_parquet_once_wherever_the_query_was_killed(
    db: Database, spark: SparkSession, tmp_path: Path, step: str
) -> None:
    begin(db)
    if step == COMMITTED:
        killed(db, tmp_path, "", "before its end is known")
        forget_commit(tmp_path)
    else:
        killed(db, tmp_path, "", step)
    write_parquet(changes(spark, db.dsn), tmp_path).awaitTermination()
    found = spark.read.parquet(str(tmp_path / "rows")).select("_change_type", "_commit_version", "id", "amount")
    assert Counter(map(tuple, found.collect())) == wanted(db) != Counter()


@pytest.mark.soak
@pytest.mark.parametrize("step", IN_DATABASE)
def test_each_change_is_loaded_once_into_another_database_wherever_the_query_was_killed(
    db: Database, copy: Database, spark: SparkSession, tmp_path: Path, step: str
) -> None:
    begin(db)
    killed(db, tmp_path, copy.dsn, step)
    write_copy(changes(spark, db.dsn), tmp_path, copy.dsn).awaitTermination()
    found = copy.execute("SELECT _change_type, _commit_version, id, amount FROM copied")
    assert Counter(found) == wanted(db) != Counter()
    complete = db.value("SELECT max(watermark) FROM pgtrickle.versions('orders')")
    assert copy.value("SELECT watermark FROM pgtrickle.watermarks()") == complete


def begin(db: Database) -> None:
    for statement in SOURCE:
        db.execute(statement)
    work(db, 1)


def killed(db: Database, place: Path, copy: str, step: str) -> None:
    """Have two more versions streamed, and the query killed at a step of the second one's batch."""
    for version in (2, 3):
        work(db, version)
    assert newest(db) == 3
    # That batch leads from version 2 to version 3; the first one had the number 0.
    after = 1 if step in (STAGED, COMMITTED) else 2
    program = [sys.executable, "-W", "ignore", "-m", "tests.spark.feed_program"]
    done = subprocess.run(
        [*program, db.dsn, str(place), copy, step, str(after)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        cwd=ROOT,
        start_new_session=True,
        timeout=PATIENCE,
        capture_output=True,
        text=True,
    )
    note = place / "died"
    assert done.returncode == -signal.SIGKILL and note.read_text() == step, done.stderr[-3000:]
    note.unlink()


def forget_commit(place: Path) -> None:
    """Leave the checkpoint as it is when the query dies between the sink's commit of its last batch and Spark's own."""
    commits = place / "checkpoint/commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for path in (commits / f"{last}", commits / f".{last}.crc"):
        path.unlink(missing_ok=True)
