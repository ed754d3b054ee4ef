"""One executor against two: the join of two large tables on a standalone cluster whose workers have one core each."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from benchmarks.clock import Timing
from benchmarks.conditions import machine
from benchmarks.engines.processor import processor_seconds
from benchmarks.engines.standalone import standalone_cluster
from pytrickle.client.client import Client

Refresh = Callable[[], float]
Costs = tuple[Timing, Timing]

TABLES = """
CREATE SCHEMA large;
CREATE TABLE large.invoices (id bigint PRIMARY KEY, region int NOT NULL, due numeric(12, 2) NOT NULL);
CREATE TABLE large.payments (id bigint PRIMARY KEY, invoice_id bigint NOT NULL, paid numeric(12, 2) NOT NULL);
INSERT INTO large.invoices SELECT i, i % 250, i % 1000 FROM generate_series(1, {rows}) AS i;
INSERT INTO large.payments SELECT i, i * 7919::bigint % {rows} + 1, i % 1000 FROM generate_series(1, {rows}) AS i;
"""
QUERY = """
SELECT i.region, count(*) AS payments, sum(p.paid) AS paid, sum(i.due) AS due
FROM large.payments p JOIN large.invoices i ON i.id = p.invoice_id GROUP BY i.region
"""
NAME = "large.report"
WHOLE = f"SELECT pgtrickle.reinitialize_stream_table('{NAME}')"
CHANGE = "UPDATE large.payments SET paid = paid + 1 WHERE id % 10 = 3"
KINDS = {"a whole refresh": WHOLE, "a tenth of the payments changed": CHANGE}
EXECUTORS = (1, 2)


def measure_cluster(client: Client, connection: psycopg.Connection, dsn: str, sizes: tuple[int, int, int]) -> str:
    """Refresh through one executor, then through two; return the section of the report.

    `sizes` are the rows of each table, the rounds that count after one that warms up, and the server's first process.
    """
    rows, rounds, postmaster = sizes
    load = os.getloadavg()[0]
    connection.execute(TABLES.format(rows=rows).encode())
    connection.execute("VACUUM ANALYZE large.invoices, large.payments")
    client.create_stream_table(NAME, QUERY, refresh_mode="DIFFERENTIAL")
    taken = {}
    for executors in EXECUTORS:
        with _driver(dsn, executors) as refresh:
            for kind, statement in KINDS.items():
                taken[kind, executors] = _measure(connection, refresh, statement, rounds, postmaster)
    return TEMPLATE.format(
        rows=rows,
        rounds=rounds,
        lines="\n".join(_line(kind, *(taken[kind, executors] for executors in EXECUTORS)) for kind in KINDS),
        conditions="; ".join(machine(load, "server, driver and executors share it").values()),
    )


def _measure(connection: psycopg.Connection, refresh: Refresh, statement: str, rounds: int, postmaster: int) -> Costs:
    seconds, server = [], []
    for _ in range(rounds + 1):
        connection.execute(statement.encode())
        before = processor_seconds(postmaster)
        seconds.append(refresh())
        server.append(processor_seconds(postmaster) - before)
    return Timing(tuple(seconds[1:])), Timing(tuple(server[1:]))


@contextmanager
def _driver(dsn: str, executors: int) -> Iterator[Refresh]:
    """Start a cluster and a driver for it; yield what has that refresh once."""
    with tempfile.TemporaryDirectory() as home, standalone_cluster(Path(home), executors, "2g") as cluster:
        command = [sys.executable, "-m", "benchmarks.engines.driver", dsn, cluster.master, NAME]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            requests, answers = process.stdin, process.stdout
            assert requests and answers

            def refresh() -> float:
                requests.write("refresh\n")
                requests.flush()
                return float(answers.readline())

            yield refresh
            requests.close()


def _line(kind: str, one: Costs, two: Costs) -> str:
    cells = [_span(timing) for timing in (one[0], two[0])]
    ratio = two[0].median / one[0].median
    return f"| {kind} | {' | '.join(cells)} | {ratio:.2f} | {one[1].median:.2f} | {two[1].median:.2f} |"


def _span(timing: Timing) -> str:
    fastest, slowest = timing.span
    return f"{timing.median:.2f} ({fastest:.2f} – {slowest:.2f})"


TEMPLATE = """{rows:,} payments joined with as many invoices, grouped into 250 regions, under `spark` on a standalone
cluster whose workers have one core each, all on this machine. Seconds of the whole refresh, commit included: the median
of {rounds} rounds after one that warmed up; then the processor seconds of PostgreSQL. The second executor brings a core
and as much memory again, so that a ratio below a half is not the cores' alone; and server, driver and executors share
the machine, so that where the server or the driver does most of the work a second executor hardly helps.

| refresh | one executor | two executors | ratio | server, one | server, two |
|---|---:|---:|---:|---:|---:|
{lines}

{conditions}.
"""
