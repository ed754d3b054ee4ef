"""Refreshes and streams by Spark with event log and user interface; run as a program, to have a Java of its own.

Writes all that plans, errors, logs, values and the user interface show, and leaves the files in a directory.
"""

import logging
import os
import shutil
import sys
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
from pyspark.sql import DataFrame, SparkSession

import pytrickle
from pytrickle.compute.spark.jdbc import PinnedReader
from pytrickle.database import connect, jdbc_target
from pytrickle.streaming import PostgresSinkSource, postgres_sink

PAGES = ("SQL/", "environment/", "jobs/", "stages/", "executors/", "SQL/execution/?id=0", "SQL/execution/?id=1",
         "StreamingQuery/")  # fmt: skip
ANSWERS = ("environment", "sql?details=true&planDescription=true", "jobs", "stages?details=true", "allexecutors",
           "executors/driver/threads")  # fmt: skip


def main(directory: Path) -> None:
    """Work with the password of PYTRICKLE_DSN, as a user would."""
    os.dup2(sys.stdout.fileno(), sys.stderr.fileno())
    logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    logging.getLogger("pytrickle").setLevel(logging.DEBUG)
    dsn = os.environ["PYTRICKLE_DSN"]
    session = _session(directory)
    with psycopg.connect(dsn, autocommit=True) as shop:
        _refresh(session, shop)
        _plans(session, dsn)
        _views(session, dsn)
        _stream(session, dsn, directory)
        for shown in shop.execute("SELECT query FROM pg_stat_activity").fetchall():
            _show("statement", shown)
    _processes()
    _pages(session)
    shutil.copytree(directory / "local", directory / "local files")
    session.stop()


def _session(directory: Path) -> SparkSession:
    (directory / "events").mkdir()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.port", "0").config("spark.ui.enabled", "true")
    builder = builder.config("spark.eventLog.enabled", "true").config("spark.eventLog.compress", "false")
    builder = builder.config("spark.eventLog.dir", (directory / "events").as_uri())
    builder = builder.config("spark.local.dir", str(directory / "local")).config("spark.sql.shuffle.partitions", "1")
    session = pytrickle.configure_spark_with_pytrickle(builder).getOrCreate()
    session.sparkContext.setLogLevel("INFO")
    return session


def _refresh(session: SparkSession, shop: psycopg.Connection) -> None:
    """Refresh whole, by Spark's joins, and in vain."""
    shop.execute("CREATE TABLE orders (id bigint, placed_at timestamptz)")
    shop.execute("INSERT INTO orders VALUES (0, now())")
    with pytrickle.connect(spark=session, small_delta_rows=0, direct_delta_rows=0) as client:
        client.create_stream_table("per_id", "SELECT a.id, count(*) FROM orders a JOIN orders b USING (id) GROUP BY 1")
        client.create_stream_table("shares", "SELECT id, 100 / (id - 7) AS share FROM orders")
        _show("first", [(result.stream_table, str(result.action)) for result in client.tick()])
        shop.execute("INSERT INTO orders SELECT i, now() FROM generate_series(1, 100) AS i")
        for result in client.tick():
            _show("second", (result.stream_table, str(result.action), result.error))
            _show("explained", client.explain(result.stream_table))
        _failure(lambda: client.refresh("shares"))
        _show("client", (client, client.settings, vars(client)))
    for function in ("pgt_status", "refresh_history", "alerts"):
        _show(function, shop.execute(f"SELECT * FROM pgtrickle.{function}()".encode()).fetchall())


def _plans(session: SparkSession, dsn: str) -> None:
    with connect(dsn) as connection:
        target = jdbc_target(connection)
    _show("target", (target, str(target)))
    reader = PinnedReader(session, target, "none", ())
    frame = reader.read("SELECT 1 AS n")
    frame.explain(extended=True)
    frame.explain(mode="formatted")
    _show("frame", (frame, frame._jdf.queryExecution().toString(), frame._jdf.queryExecution().logical().toJSON()))
    _failure(lambda: reader.read("SELECT * FROM nowhere"))
    _failure(lambda: reader.read("SELECT 1 / (random() * 0)::int AS n").toArrow())
    _failure(lambda: connect(psycopg.conninfo.make_conninfo(dsn, dbname="nowhere")))
    _failure(lambda: connect(psycopg.conninfo.make_conninfo(dsn, port="1")))
    _failure(
        lambda: PinnedReader(session, type(target)(f"{target.url}x", target.properties), "none", ()).read("SELECT 1")
    )


def _views(session: SparkSession, dsn: str) -> None:
    """Read a table by a name of its own, which Spark tells of with the options that it was given."""
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    url = "postgresql://{user}:{password}@{host}:{port}/{dbname}".format(**{n: quote(p, "") for n, p in parts.items()})
    for name, given in (("by_words", dsn), ("by_address", url)):
        session.read.format("pytrickle").options(url=given, table="orders").load().createOrReplaceTempView(name)
        session.sql(f"CACHE TABLE cached_{name} AS SELECT * FROM {name}")
        session.sql(f"EXPLAIN EXTENDED SELECT * FROM {name}").show(truncate=False)
        _show("described", session.sql(f"DESCRIBE EXTENDED {name}").collect())


def _stream(session: SparkSession, dsn: str, directory: Path) -> None:
    """Stream into the table in both ways, and once into one that is not there."""
    session.dataSource.register(PostgresSinkSource)
    sink = postgres_sink(dsn, "orders", sink="f", event_time="placed_at")
    _show("sink", sink)
    for number, writer in enumerate(_writers(session, dsn, sink)):
        query = (
            writer.option("checkpointLocation", str(directory / f"checkpoint {number}"))
            .trigger(availableNow=True)
            .start()
        )
        _failure(lambda query=query: query.awaitTermination(60), expected=False)
        _show("stream", (number, query.lastProgress, query.exception()))
        query._jsq.explain(True)
        query.stop()


def _writers(session: SparkSession, dsn: str, sink: Callable[[DataFrame, int], None]) -> Iterator:
    source = session.readStream.format("rate").option("rowsPerSecond", 5).load()
    rows = source.selectExpr("value AS id", "timestamp AS placed_at").withWatermark("placed_at", "1 second")
    options = {"dsn": dsn, "sink": "s", "event_time": "placed_at", "watermark_lateness": "1"}
    yield rows.writeStream.foreachBatch(sink)
    yield rows.writeStream.format("pytrickle").options(**options, table="orders")
    yield rows.writeStream.format("pytrickle").options(**options, table="nowhere")


def _failure(action: Callable[[], object], expected: bool = True) -> None:
    """Show all that whoever reads a log sees of an error."""
    try:
        action()
        _show("went well", not expected)
    except Exception as error:
        _show("failed", ("".join(traceback.format_exception(error)), repr(error), vars(error)))


def _processes() -> None:
    """Show the command lines of everything that runs on this machine: children, and Spark's Java and Python workers."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            _show("command line", process.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue


def _pages(session: SparkSession) -> None:
    context = session.sparkContext
    for page in (*PAGES, *(f"api/v1/applications/{context.applicationId}/{answer}" for answer in ANSWERS)):
        with urllib.request.urlopen(f"{context.uiWebUrl}/{page}") as answer:
            _show(f"page {page} {answer.status}", answer.read().decode())


def _show(what: str, shown: object) -> None:
    sys.stdout.write(f"{what}: {shown!s} {shown!r}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
