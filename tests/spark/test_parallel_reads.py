"""A table as it is now, read by several tasks at one moment, which a process of its own holds for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from pytrickle.database import connect
from pytrickle.errors import DatabaseError, NotRetained
from pytrickle.streaming.source import holder
from pytrickle.streaming.source.columns import Relation, relation
from pytrickle.streaming.source.holder import Held, hold
from pytrickle.streaming.source.rows import (
    MOST_PARTS,
    PAGES_OF_A_PART,
    Part,
    number_of_parts,
    parts_of_snapshot,
    row_batches,
)
from tests.conftest import Database
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOLDERS = "FROM pg_stat_activity WHERE (datname, application_name) = (current_database(), 'pytrickle/reader snapshot')"
PROGRAM = """
import os, signal, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.read.format("pytrickle").options(table="orders", partitions=2).load()
print(frame.rdd.getNumPartitions(), flush=True)
os.killpg(0, signal.SIGKILL)
"""


@pytest.fixture
def orders(db: Database) -> Database:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, amount numeric(10,2))")
    db.execute("INSERT INTO orders SELECT n, n FROM generate_series(1, 3000) AS n")
    return db


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands in for Spark's: it lives until it is killed."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


def write(db: Database) -> None:
    """Change, move, delete and add rows."""
    db.execute("UPDATE orders SET amount = amount + 1 WHERE id % 3 = 0")
    db.execute("DELETE FROM orders WHERE id % 7 = 0")
    db.execute("INSERT INTO orders SELECT max(id) + n, n FROM orders, generate_series(1, 400) AS n GROUP BY n")


def now(db: Database) -> Counter[tuple[Any, ...]]:
    return Counter(db.execute("SELECT id, amount FROM orders"))


def holding(db: Database) -> int:
    """Count the sessions that hold a snapshot for tasks."""
    return int(db.value(f"SELECT count(*) {HOLDERS} AND backend_xmin IS NOT NULL"))


def read_part(db: Database, found: Relation, part: Part) -> Counter[tuple[Any, ...]]:
    with connect(db.dsn, role="reader") as connection:
        batches = list(row_batches(connection, found, found.columns, part))
    return Counter(tuple(row.values()) for batch in batches for row in batch.to_pylist())


def found_orders(db: Database) -> Relation:
    with connect(db.dsn) as connection:
        return relation(connection, "orders")


def test_parts_show_one_moment_whatever_is_written_between_them(orders: Database) -> None:
    before, found = now(orders), found_orders(orders)
    held = hold(orders.dsn, 3, os.getpid())
    parts = parts_of_snapshot(found, 3, None, held)
    read = []
    for part in parts:
        write(orders)
        read.append(read_part(orders, found, part))
    assert sum(read, Counter()) == before != now(orders)
    assert all(read), "each part has rows"
    assert read_part(orders, found, parts[1]) == read[1], "a task that is repeated reads the same"


def test_two_reads_each_hold_their_own_moment(orders: Database, sleeper: subprocess.Popen[bytes]) -> None:
    found, moments, held = found_orders(orders), [], []
    for _ in range(2):
        moments.append(now(orders))
        held.append(hold(orders.dsn, 2, sleeper.pid))
        write(orders)
    assert holding(orders) == 2
    for moment, one in zip(moments, held, strict=True):
        parts = parts_of_snapshot(found, 2, None, one)
        assert sum((read_part(orders, found, part) for part in parts), Counter()) == moment
    sleeper.kill()
    sleeper.wait()
    wait_for(lambda: holding(orders) == 0, "the snapshots to end with the process that they were held for")
    with pytest.raises(NotRetained, match="no longer held") as gone:
        read_part(orders, found, parts[0])
    assert "Load the table again" in str(gone.value.hint)


def test_no_process_shows_the_password(orders: Database, sleeper: subprocess.Popen[bytes]) -> None:
    hold(orders.dsn.replace("postgres@", "postgres:s3cr3t@"), 2, sleeper.pid)
    shown = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert any(b"pytrickle.streaming.source.holder" in each for each in shown)
    assert not any(b"s3cr3t" in each for each in shown)


def test_what_cannot_be_held_is_told(orders: Database) -> None:
    with pytest.raises(DatabaseError, match=r"No snapshot was held .*does not exist") as refused:
        hold(f"{orders.dsn}_nowhere", 2, os.getpid())
    assert "partitions to 1" in str(refused.value.hint)


def test_the_size_of_a_table_decides_how_many_tasks_read_it() -> None:
    def number(pages: int | None, wanted: int | None = None) -> int:
        return number_of_parts(Relation(1, "public", "orders", pages, ()), wanted)

    assert [number(pages) for pages in (0, PAGES_OF_A_PART, 2 * PAGES_OF_A_PART, 10**9)] == [1, 1, 2, MOST_PARTS]
    assert (number(10, wanted=3), number(10**9, wanted=1), number(None, wanted=3)) == (3, 1, 1)


def test_a_snapshot_is_held_while_tasks_read_or_may_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock and the server's list of backends are played."""
    clock, backends = [0.0], {41}
    monkeypatch.setattr(holder, "monotonic", lambda: clock[0])

    class Ear:
        def execute(self, _: str, parameters: tuple[list[int]]) -> list[tuple[int]]:
            return [(backend,) for backend in backends & set(parameters[0])]

    tasks = holder._Tasks({0, 1}, heard=0.0)

    def over(seconds: float) -> bool:
        clock[0] += seconds
        return tasks.are_over(Ear())  # type: ignore[arg-type]

    tasks.hear("0 41")
    assert not over(holder.NO_TASK_FOR), "a task reads"
    tasks.hear("0")
    assert not over(holder.NO_TASK_FOR - 1), "another task may come"
    tasks.hear("1 42")
    assert not over(1), "it has died, and may be repeated"
    assert not over(holder.NO_REPETITION_FOR - 1)
    assert over(1), "nobody repeats it"
    tasks.hear("1 41")
    assert not over(holder.NO_TASK_FOR), "somebody does"
    tasks.hear("1")
    assert not over(holder.NO_REPETITION_FOR - 1), "a task may be repeated after all were read"
    assert over(1)
    tasks = holder._Tasks({0, 1}, heard=clock[0])
    assert not over(holder.NO_TASK_FOR - 1), "no task has come yet"
    assert over(1)


def test_spark_divides_a_table_and_reads_it_as_it_was_when_planned(orders: Database, spark: SparkSession) -> None:
    before = now(orders)
    frame = spark.read.format("pytrickle").options(dsn=orders.dsn, table="orders", partitions=3).load()
    assert frame.rdd.getNumPartitions() == 3
    write(orders)
    for _ in range(2):
        assert Counter(map(tuple, frame.collect())) == before != now(orders)
    assert orders.execute(f"SELECT pg_terminate_backend(pid, 10000) {HOLDERS}") == [(True,)]
    with pytest.raises(PySparkException, match="no longer held"):
        frame.collect()


def test_a_table_that_took_the_name_meanwhile_is_not_read_in_its_place(orders: Database, spark: SparkSession) -> None:
    orders.execute("CREATE TABLE newer (LIKE orders)")
    orders.execute("INSERT INTO newer SELECT id, -amount FROM orders")
    frame = spark.read.format("pytrickle").options(dsn=orders.dsn, table="orders", partitions=2).load()
    assert frame.count() == 3000
    orders.execute("BEGIN; ALTER TABLE orders RENAME TO older; ALTER TABLE newer RENAME TO orders; COMMIT")
    with pytest.raises(PySparkException, match="another table"):
        frame.collect()


def test_floats_are_read_without_loss_whatever_sessions_begin_with(db: Database) -> None:
    db.execute("CREATE TABLE orders (third float8, small float4)")
    db.execute("INSERT INTO orders VALUES (1 / 3::float8, 0.5)")
    before = db.execute("TABLE orders")
    db.execute(f"ALTER DATABASE {db.value('SELECT current_database()')} SET extra_float_digits = 0")
    assert [*read_part(db, found_orders(db), parts_of_snapshot(found_orders(db), 1, None, None)[0])] == before


def test_a_small_table_is_read_by_one_task_and_nothing_is_held(orders: Database, spark: SparkSession) -> None:
    frame = spark.read.format("pytrickle").options(dsn=orders.dsn, table="orders").load()
    assert frame.rdd.getNumPartitions() == 1
    assert (Counter(map(tuple, frame.collect())), holding(orders)) == (now(orders), 0)


@pytest.mark.repeats
def test_a_snapshot_ends_with_a_spark_that_is_killed(orders: Database) -> None:
    environment = {**os.environ, "PYTRICKLE_DSN": orders.dsn}
    command = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(command, env=environment, capture_output=True, start_new_session=True, check=False)
    assert (ended.returncode, ended.stdout.strip()) == (-signal.SIGKILL, b"2")
    wait_for(lambda: holding(orders) == 0, "the snapshot to end with Spark")


def test_the_channel_of_a_read_is_nobody_elses(orders: Database, sleeper: subprocess.Popen[bytes]) -> None:
    first, second = (hold(orders.dsn, 2, sleeper.pid) for _ in range(2))
    assert isinstance(first, Held)
    assert first.channel != second.channel
    assert len(first.channel) > len("pytrickle_") + 12, "cannot be guessed"
