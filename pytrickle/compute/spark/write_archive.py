"""Writing the archive of Spark's classes, in a process of its own after that which refreshed has ended.

Java needs about twice the time for all it does while it takes notes for an archive, so that no refresh waits for that.
`python -m pytrickle.compute.spark.write_archive` reads from its input where the database is.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

from pytrickle.compute.spark.class_archive import ClassArchive, class_archive
from pytrickle.config import Settings
from pytrickle.database import JdbcTarget

# The sample of a refresh that Java is to know: reads through JDBC, a join, groups, and rows as Arrow.
READ = """(SELECT CAST(i AS bigint) AS k, CAST(i AS text) AS t, CAST(i AS numeric(12,2)) AS v, 1 AS w
FROM generate_series(1, 9) AS i) AS pgt_read"""
SAMPLE = """SELECT CAST(a.k AS STRING), sum(CASE a.w WHEN 1 THEN a.v ELSE a.v * CAST(a.w AS DECIMAL(9,0)) END), sum(a.w)
FROM (SELECT /*+ BROADCAST(a) */ a.k, b.v, a.w FROM pgt_sample AS a JOIN pgt_sample AS b ON a.t = b.t
UNION ALL SELECT k, v, -w FROM pgt_sample) AS a GROUP BY a.k"""
SMALL = {"spark.driver.memory": "512m", "spark.sql.shuffle.partitions": "2"}


def start_writing(settings: Settings, target: JdbcTarget) -> None:
    """Start the process that writes the archive; it runs on when this process has ended."""
    told = {"jar": settings.jdbc_jar, "url": target.url, "properties": dict(target.properties)}
    quiet: dict[str, Any] = {"stdout": DEVNULL, "stderr": DEVNULL, "start_new_session": True}
    with suppress(OSError):
        writer = Popen([sys.executable, "-m", __name__], stdin=PIPE, text=True, **quiet)
        assert writer.stdin is not None
        writer.stdin.write(json.dumps(told))
        writer.stdin.close()


def main() -> None:
    """Write the archive, unless another process does, after all that is more urgent."""
    told = json.load(sys.stdin)
    settings = Settings(spark_master="local[1]", jdbc_jar=told["jar"])
    archive = class_archive(settings)
    if archive is None or archive.exists:
        return
    os.nice(10)
    with archive.path.with_suffix(".lock").open("w") as lock, suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _write(archive, settings, told)


def _write(archive: ClassArchive, settings: Settings, told: dict[str, Any]) -> None:
    beside = archive.path.with_suffix(".new")
    if _play(archive.writing(beside), settings, told):
        return
    with beside.open("rb") as written:
        os.fsync(written.fileno())
    beside.replace(archive.path)


def _play(options: str, settings: Settings, told: dict[str, Any]) -> int:
    """Let Spark read, join and group; return how Java ended, which it does with its input, and then writes."""
    from pyspark.errors import PySparkException

    from pytrickle.compute.spark.session import start_session

    session = start_session(settings, options, **SMALL)
    java = session.sparkContext._gateway.proc  # type: ignore[union-attr]
    with suppress(PySparkException):
        reader = session.read.format("jdbc").options(**told["properties"], url=told["url"], fetchsize="100")
        reader.option("dbtable", READ).load().createOrReplaceTempView("pgt_sample")
        session.sql(SAMPLE).toArrow()
    session.stop()
    java.stdin.close()
    return int(java.wait())


if __name__ == "__main__":
    main()
