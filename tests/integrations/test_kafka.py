"""From a topic with a slow partition into PostgreSQL: no row is late, each is there once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Database
from tests.documents import ROOT
from tests.integrations.kafka_broker import broker
from tests.unit.moments import noon

SESSION = Path(__file__).with_name("kafka_session.py")


@pytest.mark.parametrize(
    "way", [pytest.param("load", marks=pytest.mark.repeats), pytest.param("Spark", marks=pytest.mark.soak)]
)
def test_a_topic_is_loaded_by_partitions(db: Database, tmp_path: Path, way: str) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, at timestamptz)")
    db.execute("CREATE TABLE offsets AS SELECT partition, 0 AS next FROM generate_series(0, 1) AS partition")
    db.execute("SELECT pgtrickle.set_event_time('orders', 'at')")
    with broker() as (address, packages):
        arguments = [db.dsn, address, *([] if way == "load" else [str(tmp_path / "checkpoint")])]
        own = {**os.environ, "PYTHONPATH": f"{ROOT}:{packages}", "PYSPARK_PYTHON": sys.executable}
        done = subprocess.run(
            [sys.executable, SESSION, *arguments], capture_output=True, text=True, timeout=240, env=own
        )
        assert done.returncode == 0, done.stderr[-3000:]
    assert db.value("SELECT array_agg(id ORDER BY id) FROM orders") == list(range(16))
    assert db.execute("SELECT * FROM pgtrickle.late_rows('orders')") == []
    assert db.value("SELECT watermark FROM pgtrickle.watermarks()") == noon(7 * 60 - 5)
    names = "SELECT partition_name, waited_for FROM pgtrickle.partitions('orders')"
    assert db.execute(names) == [("0", False), ("1", True)]
