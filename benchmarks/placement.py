"""Where a large delta is joined: `python -m benchmarks.placement [--rows N] [--changes N ...] [--rounds N]`.

Three stream tables have the same query, an indexed join of two tables with an aggregate over it. After every batch of
changes each is refreshed in its own way: joined in PostgreSQL, in Spark with the other table asked only for the rows
that the changes join, and in Spark with that table read whole. Prints a Markdown table of seconds.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import psycopg
from pyspark.sql import SparkSession

import pytrickle
from benchmarks.server import debian_binaries, server_settings
from pytrickle.client.client import Client
from pytrickle.database import connect
from pytrickle.demo.server import postgres_server
from pytrickle.plan.spark import restriction

WAYS = {"PostgreSQL": sys.maxsize, "Spark, keys first": 0, "Spark, whole tables": 0}
SCHEMA = """
CREATE TABLE orders (id bigint PRIMARY KEY, region int NOT NULL, note text NOT NULL);
CREATE TABLE lines (id bigint PRIMARY KEY, order_id bigint NOT NULL, amount numeric(12, 2) NOT NULL, note text);
INSERT INTO orders SELECT i, i % 500, repeat('o', 60) FROM generate_series(1::bigint, {rows}) AS i;
INSERT INTO lines SELECT i, 1 + (i * 7919) % {rows}, i % 10000 / 100.0, repeat('l', 60)
FROM generate_series(1::bigint, {rows}) AS i;
CREATE INDEX ON lines (order_id);
ANALYZE orders, lines
"""
QUERY = """
SELECT o.region, count(*) AS lines, sum(l.amount) AS amount FROM lines AS l JOIN orders AS o ON o.id = l.order_id
GROUP BY o.region
"""
# An update is two changes, of the old row and of the new one.
CHANGE = "UPDATE lines SET amount = amount + 1 WHERE id % ({rows} / {updates}) = {round} % ({rows} / {updates})"


def main() -> None:
    """Measure on a server started for the purpose."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.placement", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of each of the two tables")
    parser.add_argument("--changes", type=int, nargs="+", default=[50_000, 200_000, 500_000])
    parser.add_argument("--rounds", type=int, default=3, help="batches of every size that are measured")
    parser.add_argument("--binaries", type=Path, default=debian_binaries(), help="directory of postgres and initdb")
    options = parser.parse_args()
    with postgres_server(options.binaries, server_settings("512MB")) as server, ExitStack() as clients:
        pytrickle.install(server.dsn)
        connection = clients.enter_context(connect(server.dsn, role="benchmark"))
        for statement in SCHEMA.format(rows=options.rows).split(";"):
            connection.execute(statement.encode())
        tables = {way: clients.enter_context(_client(server.dsn, small)) for way, small in WAYS.items()}
        for number, client in enumerate(tables.values()):
            client.create_stream_table(f"report_{number}", QUERY, refresh_mode="DIFFERENTIAL")
            client.refresh(f"report_{number}")
        list(_measure(connection, tables, options.rows, options.changes[:1], 1))
        print(f"{options.rows:,} rows in each table, load average before measuring {os.getloadavg()[0]:.1f}\n")
        print(f"| changes | {' | '.join(WAYS)} | PostgreSQL / keys first | whole / keys first |")
        print("|---" * (len(WAYS) + 3) + "|")
        for line in _measure(connection, tables, options.rows, options.changes, options.rounds):
            print(line, flush=True)
        if not all(client.verify(f"report_{number}").matches for number, client in enumerate(tables.values())):
            raise SystemExit("A stream table differs from its query.")


def _client(dsn: str, small_delta_rows: int) -> Client:
    session = SparkSession.getActiveSession()
    return pytrickle.connect(dsn, session, small_delta_rows=small_delta_rows, direct_delta_rows=0)


def _measure(
    connection: psycopg.Connection, tables: dict[str, Client], rows: int, changes: list[int], rounds: int
) -> Iterator[str]:
    for size in changes:
        seconds: dict[str, list[float]] = {way: [] for way in tables}
        for number in range(rounds):
            change = CHANGE.format(rows=rows, updates=size // 2, round=number)
            connection.execute(change.encode())
            for way in _rotated(list(tables), number):
                with _keys_first(way):
                    result = tables[way].refresh(f"report_{list(tables).index(way)}")
                seconds[way].append(result.duration.total_seconds())
        middle = {way: median(taken) for way, taken in seconds.items()}
        database, keys, whole = middle.values()
        times = " | ".join(f"{each:.1f} s" for each in middle.values())
        yield f"| {size:,} | {times} | {database / keys:.2f} | {whole / keys:.2f} |"


def _rotated(ways: list[str], number: int) -> list[str]:
    """Let each way come first in turn: who comes first warms the caches for the others."""
    first = number % len(ways)
    return [*ways[first:], *ways[:first]]


@contextmanager
def _keys_first(way: str) -> Iterator[None]:
    """Have Spark read whole tables where that is what is measured."""
    known = restriction.WORTH_ASKING, restriction.ROWS_PER_JOINED
    restriction.WORTH_ASKING, restriction.ROWS_PER_JOINED = sys.maxsize if way == "Spark, whole tables" else 0, 0
    try:
        yield
    finally:
        restriction.WORTH_ASKING, restriction.ROWS_PER_JOINED = known


if __name__ == "__main__":
    main()
