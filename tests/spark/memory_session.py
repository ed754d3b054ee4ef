"""Refreshes a join after many changes on a Spark with little memory; run as a program, to have a Java of its own."""

import sys

import psycopg
from pyspark.sql import SparkSession

import pytrickle
from pytrickle.errors import SparkOutOfMemory

JOINED = "SELECT k, filler, v FROM a JOIN b USING (k)"
# What arrives: wide rows, as many as are kept in memory; and more, narrower ones.
ARRIVALS = ((500, 400_000), (300, 700_000))
WHOLE = "SELECT d.k, c.filler FROM c JOIN d ON d.c = c.k"


def main(dsn: str, arrivals: str) -> None:
    """Write what becomes of a refresh after each of so many arrivals, and of the next one where it fails.

    After none, the first load is the refresh: of tables that would be kept in memory, were their rows not so wide.
    """
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "512m")
    session = pytrickle.configure_spark_with_pytrickle(builder.config("spark.ui.enabled", "false")).getOrCreate()
    with (
        psycopg.connect(dsn, autocommit=True) as shop,
        pytrickle.connect(dsn, spark=session, small_delta_rows=0, direct_delta_rows=0) as client,
    ):
        if not int(arrivals):
            _load(shop, client)
            return
        shop.execute("CREATE TABLE a (k int, filler text)")
        shop.execute("CREATE TABLE b (k int, v int) WITH (autovacuum_enabled = off)")  # Nobody knows how few.
        client.create_stream_table("joined", JOINED, refresh_mode="DIFFERENTIAL")
        client.tick()
        shop.execute("INSERT INTO b SELECT i, i FROM generate_series(1, 1000000, 1000) AS i")
        for width, rows in ARRIVALS[: int(arrivals)]:
            shop.execute("INSERT INTO a SELECT i, repeat('x', %s) FROM generate_series(1, %s) AS i", (width, rows))
            _refresh(client, "joined")


def _load(shop: psycopg.Connection, client: pytrickle.Client) -> None:
    shop.execute(
        "CREATE TABLE c AS SELECT i AS k, repeat('x', 3000) || i AS filler FROM generate_series(1, 150000) AS i"
    )
    shop.execute("CREATE TABLE d AS SELECT i AS k, i * 300 AS c FROM generate_series(1, 160000) AS i")
    shop.execute("ANALYZE c, d")
    client.create_stream_table("whole", WHOLE, refresh_mode="DIFFERENTIAL", engine="spark")
    _refresh(client, "whole")


def _refresh(client: pytrickle.Client, name: str) -> None:
    try:
        result = client.refresh(name)
    except SparkOutOfMemory as error:
        sys.stdout.write(f"{type(error).__name__}: {error}\n")
        result = client.refresh(name)
    sys.stdout.write(f"{result.action} {result.rows_inserted} {client.verify(name).matches}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
