"""Reads a table, what it was, its changes and a stream of them, in a classic session or through Spark Connect; run as a
program, by the Python of whichever version of PySpark is to be played. The database is that of libpq's environment."""

import json
import re
import sys
from pathlib import Path

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

SWITCH = "spark.sql.python.filterPushdown.enabled"


def main(directory: str, kind: str) -> None:
    """Write what was read as one line of JSON each, with the version and the kind of the session first."""
    builder = SparkSession.builder.config("spark.ui.enabled", "false").config(SWITCH, "true")
    start = builder.remote if kind == "connect" else builder.master
    session = start("local[1]").getOrCreate()
    say([pyspark.__version__, type(session).__module__])
    say(rows(read(session)))
    say(rows(read(session, version=1, partitions=2)))
    say(rows(read(session, asOf="2026-03-02T01:00Z", group="shop")))
    feed = {"readChangeFeed": "true", "startingVersion": 1, "startingBoundInclusive": "false"}
    say(rows(read(session, **feed, computeUpdates="true"), "_change_type", "_commit_version"))
    for _ in range(2):
        say(streamed(session, Path(directory), feed))
    say(filtered(read(session, pushFilters="true")))


def read(session: SparkSession, **options: object) -> DataFrame:
    return session.read.format("pytrickle").options(table="orders", **options).load()


def rows(frame: DataFrame, *further: str) -> list[list[object]]:
    """Return the rows as numbers and texts, in their order."""
    return sorted(list(row) for row in frame.select(*further, "id", frame.amount.cast("string")).collect())


def streamed(session: SparkSession, place: Path, feed: dict[str, object]) -> list[list[object]]:
    """Append to Parquet what is complete now, a version to a batch where the version of PySpark can; return it all."""
    source = session.readStream.format("pytrickle").options(table="orders", feed="copies", **feed)
    query = source.option("maxVersionsPerTrigger", 1).load().writeStream.format("parquet")
    query = query.option("path", str(place / "rows")).option("checkpointLocation", str(place / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    return rows(session.read.parquet(str(place / "rows")), "_change_type", "_commit_version")


def filtered(frame: DataFrame) -> object:
    """Return the orders that a filter finds, or what Spark says where it cannot leave it to the database."""
    try:
        return rows(frame.where("id < 12"))
    except PySparkException as error:
        return next(iter(re.findall(r'pushFilters needs [^"\n]*[.]', str(error))), str(error))


def say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
