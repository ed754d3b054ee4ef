"""The first refresh of a process, part by part: under each engine, and with the archive of Spark's classes."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import psycopg

from benchmarks.conditions import machine
from pytrickle.client.client import Client

PARTS = ("imports", "catalog", "Java", "session", "refresh")
TABLES = """
CREATE SCHEMA small;
CREATE TABLE small.customers (id int PRIMARY KEY, region int NOT NULL);
CREATE TABLE small.orders (id int PRIMARY KEY, customer_id int NOT NULL, amount int NOT NULL);
INSERT INTO small.customers SELECT i, i % 7 FROM generate_series(1, 1000) AS i;
INSERT INTO small.orders SELECT i, i % 1000 + 1, i % 99 FROM generate_series(1, 20000) AS i;
"""
QUERY = """
SELECT c.region, count(*) AS orders, sum(o.amount) AS revenue
FROM small.orders o JOIN small.customers c ON c.id = o.customer_id GROUP BY c.region
"""
NAME = "small.report"


def measure_first_refresh(client: Client, connection: psycopg.Connection, dsn: str, rounds: int) -> str:
    """Start processes that load the same small stream table first; return the section of the report."""
    load = os.getloadavg()[0]
    connection.execute(TABLES)
    connection.execute("ANALYZE small.customers, small.orders")
    client.create_stream_table(NAME, QUERY)
    with tempfile.TemporaryDirectory() as directory:
        archived = {"XDG_CACHE_HOME": directory}
        _run(connection, dsn, "spark", archived)
        _wait_for_archive(Path(directory))
        ways = {
            "`postgres`": ("postgres", {}),
            "`spark`, the first ever": ("spark", {"PYTRICKLE_CLASS_ARCHIVE": "off"}),
            "`spark`": ("spark", archived),
        }
        taken: dict[str, list[Mapping[str, float]]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, (engine, environment) in ways.items():
                taken[name].append(_run(connection, dsn, engine, environment))
    return TEMPLATE.format(
        rounds=rounds,
        lines="\n".join(_line(name, runs) for name, runs in taken.items()),
        conditions="; ".join(machine(load, "server and client share it").values()),
    )


def _run(connection: psycopg.Connection, dsn: str, engine: str, environment: Mapping[str, str]) -> Mapping[str, float]:
    connection.execute("SELECT pgtrickle.reinitialize_stream_table(%s)", [NAME])
    command = [sys.executable, "-m", "benchmarks.engines.process", dsn, engine, NAME, str(time.time())]
    own = {name: value for name, value in os.environ.items() if name != "SPARK_SUBMIT_OPTS"} | dict(environment)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, env=own)
    taken: Mapping[str, float] = json.loads(done.stdout)
    return taken


def _wait_for_archive(caches: Path) -> None:
    """Wait for the archive of classes, which the end of the first process leaves to another."""
    until = time.monotonic() + 600
    while not any(caches.glob("pytrickle/*.jsa")):
        if time.monotonic() > until:
            raise TimeoutError("No archive of Spark's classes was written.")
        time.sleep(1)


def _line(name: str, runs: list[Mapping[str, float]]) -> str:
    parts = [median(run.get(part, 0.0) for run in runs) for part in PARTS]
    totals = [sum(run.values()) for run in runs]
    total = f"{median(totals):.2f} ({min(totals):.2f} – {max(totals):.2f})"
    return f"| {name} | {' | '.join(f'{part:.2f}' for part in parts)} | {total} |"


TEMPLATE = """From the start of a process to the commit of its first refresh, a whole one of 20,000 orders joined with
1,000 customers, in seconds: Python's imports, the connection and the look at the catalog, the start of Java, that of
Spark's session, and the refresh with its planning. The median of {rounds} processes each, in turns.
Where Spark is started for the first time there is no [archive of its classes](howto/spark.md#start-faster) yet.

| engine | imports | catalog | Java | session | refresh | total |
|---|---:|---:|---:|---:|---:|---:|
{lines}

{conditions}.
"""
