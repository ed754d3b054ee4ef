"""Refreshes one stream table of each placement through Spark Connect, then streams into another table; run as a
program, because a process that has a classic session cannot start one of the other kind."""

import os
import sys

import psycopg
from pyspark.sql import SparkSession

import pytrickle
from pytrickle.compute.spark.java import find_jdbc_jar
from tests.spark.connect_stream import stream_orders

OPTIONS = "--driver-class-path {} --conf spark.ui.enabled=false pyspark-shell"

DEFINITIONS = {
    "by_name": "SELECT u.name, count(*) AS n FROM t JOIN u USING (k) GROUP BY u.name",
    "counted": "SELECT u.name, c.n FROM u LEFT JOIN (SELECT k, count(*) AS n FROM t GROUP BY k) AS c ON c.k = u.k",
    "joined": "SELECT u.name, t.v FROM t JOIN u USING (k)",
}


def main(dsn: str, directory: str, form: str) -> None:
    """Write a line per refresh and verification, then how many orders were streamed, and the kind of the session."""
    os.environ["PYSPARK_SUBMIT_ARGS"] = OPTIONS.format(find_jdbc_jar())
    session = SparkSession.builder.remote("local[1]").getOrCreate()
    for small in (1000, 0):
        with (
            psycopg.connect(dsn, autocommit=True) as shop,
            pytrickle.connect(dsn, spark=session, small_delta_rows=small, direct_delta_rows=0) as client,
        ):
            if small:
                for name, query in DEFINITIONS.items():
                    client.create_stream_table(name, query)
                client.tick()
            shop.execute("INSERT INTO t VALUES (1, 10), (2, 20), (NULL, 5)")
            shop.execute("UPDATE u SET name = name || '!' WHERE k = 1")
            for result in client.tick():
                placed = "spark" if small == 0 else "postgresql"
                matches = client.verify(result.stream_table).matches
                sys.stdout.write(f"{placed} {result.stream_table} {result.action} {matches}\n")
    sys.stdout.write(f"{stream_orders(session, dsn, directory, form)}\n{type(session).__module__}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
