"""The sink in declarative pipelines of Spark: each row once, and the least watermark of the partitions, at each run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Database
from tests.documents import ROOT
from tests.unit.moments import noon

# A Spark of its own, by the command that users have.
pytestmark = [pytest.mark.long, pytest.mark.soak]

EXAMPLE = ROOT / "examples/declarative_pipeline"


def arrive(files: Path, number: int, **shards: int) -> None:
    """Write a file of orders, one of each shard, at so many seconds after noon."""
    orders = [
        {"id": number * 10 + i, "shard": shard, "placed_at": noon(second).isoformat()}
        for i, (shard, second) in enumerate(shards.items())
    ]
    (files / f"{number}.json").write_text("\n".join(map(json.dumps, orders)))
    os.utime(files / f"{number}.json", (number, number))


def run(pipeline: Path, files: Path, db: Database) -> None:
    environment = {
        **os.environ,
        # The server of Spark Connect takes a free port then, and not one that another test may have.
        "SPARK_TESTING": "1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SHOP": db.dsn,
        "ORDER_FILES": files.as_uri(),
    }
    command = [str(Path(sys.executable).with_name("spark-pipelines")), "run"]
    done = subprocess.run(command, cwd=pipeline, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_declarative_pipeline_loads_each_row_once_and_waits_for_the_slow_shard(db: Database, tmp_path: Path) -> None:
    db.execute("CREATE TABLE orders (id bigint, placed_at timestamptz)")
    pipeline, files = tmp_path / "pipeline", tmp_path / "files"
    shutil.copytree(EXAMPLE, pipeline)
    spec = pipeline / "spark-pipeline.yaml"
    spec.write_text(spec.read_text().replace("file:///tmp/order_pipeline", (tmp_path / "storage").as_uri()))
    files.mkdir()
    arrive(files, 1, fast=600, slow=0)
    arrive(files, 2, fast=1200, slow=60)
    run(pipeline, files, db)
    watermark = "SELECT watermark FROM pgtrickle.watermarks()"
    assert (db.value("SELECT count(*) FROM orders"), db.value(watermark)) == (4, noon(55))
    arrive(files, 3, fast=1800, slow=120)
    run(pipeline, files, db)
    assert db.execute("SELECT count(*), count(DISTINCT id) FROM orders") == [(6, 6)]
    assert db.value(watermark) == noon(115)
    assert db.value("SELECT batch_id FROM pgtrickle.pgt_sink_batches") == 2
