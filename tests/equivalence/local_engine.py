"""The engine's double: computes a plan's reads and its queries for Spark by PostgreSQL, without a JVM."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pyarrow as pa

from pytrickle.client.client import Client
from pytrickle.compute.staged import Staged
from pytrickle.config import Settings
from pytrickle.database.refused import refused_connection
from pytrickle.errors import SparkTooNarrow
from pytrickle.plan.placement import PLANNER
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.refresh_plan import PostgresQuery, RefreshPlan
from pytrickle.plan.spark.grouping import INEXACT
from pytrickle.plan.spark.query import SparkQuery, spark_query

# What Spark's SQL has and PostgreSQL's has not; in each session of the double the function raises as Spark's does.
RAISE = """
CREATE FUNCTION pg_temp.raise_error(message text) RETURNS numeric LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '%', message; END $$"""
COPIES = r"CROSS JOIN LATERAL generate_series(1, \1) AS n(\2)"
IN_POSTGRESQL = {
    r"`": '"',
    r"AS STRING": "AS text",
    r"raise_error\(": "pg_temp.raise_error(",
    # Arrays are equal where their elements are, NULL or not, and PostgreSQL can look them up by their hash.
    r"(d\.\w+) <=> (k\.\w+)": r"ARRAY[\1] = ARRAY[\2]",
    r"<=>": "IS NOT DISTINCT FROM",
    r"LEFT SEMI JOIN \(": "WHERE EXISTS (SELECT FROM (",
    r"\) AS k ON (.*)": r") AS k WHERE \1)",
    r"LATERAL VIEW explode\(array\(1, -1\)\) s AS (\w+)": r"CROSS JOIN (VALUES (1), (-1)) AS s(\1)",
    r"LATERAL VIEW posexplode\(array_repeat\(1, CAST\((\w+) AS INT\)\)\) n AS (\w+), \w+": COPIES,
    r"X'(\w\w)'": r"CAST('\\x\1' AS bytea)",
}
# Of small tables that are read together PostgreSQL expects hardly a row, and would read them again for each other row.
HASHED = "SET LOCAL enable_nestloop = off"
TEXTS = frozenset({"text", "varchar"})
FRAME = "{name} AS MATERIALIZED (SELECT {items} FROM (\n{sql}\n) AS f)"
COMPUTED = "{name} AS MATERIALIZED (\n{sql}\n)"


@dataclass(slots=True)
class LocalEngine:
    """Computes plans as SparkEngine does, but never writes staging tables; `plans` keeps what was asked for."""

    dsn: str
    plans: list[RefreshPlan] = field(default_factory=list)
    running: bool = False

    def prepare(self) -> None:
        """It is always there."""

    def runs(self) -> bool:
        return self.running

    def compute(
        self, plan: RefreshPlan, snapshot: str, settings: tuple[str, ...], staging: str | None = None
    ) -> Staged:
        self.plans.append(plan)
        keyed = self._reading(plan.keyed, snapshot, settings) if plan.keyed else None
        if plan.read is not None:
            return Staged(self._reading(plan.read, snapshot, settings), keyed)
        delta_rows = None if plan.placement.stage.whole else plan.delta_rows
        query = spark_query(plan.join, plan.grouping, delta_rows, few=True)
        with self._pinned(snapshot, (*settings, *PLANNER, HASHED)) as connection:
            return Staged(_joined(connection, query), keyed)

    def _reading(self, reading: PostgresQuery, snapshot: str, settings: tuple[str, ...]) -> pa.Table:
        with self._pinned(snapshot, (*settings, *reading.settings)) as connection:
            rows = connection.execute(reading.query.encode()).fetchall()
        if reading.weighted:
            return _table(reading.columns, _netted(rows))
        return _table(reading.columns, rows, weighted=False)

    @contextmanager
    def _pinned(self, snapshot: str, settings: tuple[str, ...]) -> Iterator[psycopg.Connection[Any]]:
        with self._connected() as connection:
            connection.execute(RAISE)
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'".encode())
                for statement in settings:
                    connection.execute(statement.encode())
                yield connection

    def _connected(self) -> psycopg.Connection[Any]:
        try:
            return psycopg.connect(self.dsn, autocommit=True)
        except psycopg.OperationalError as error:
            raise refused_connection(str(error)) from error


def _joined(connection: psycopg.Connection[Any], query: SparkQuery) -> pa.Table:
    """Run a query in Spark's SQL; every frame is read once."""
    frames = [
        FRAME.format(name=name, items=_bytewise(connection, frame.sql), sql=frame.sql)
        for name, frame in query.frames.items()
    ]
    names = {name: name for name in (*query.frames, *query.computed)}
    computed = [
        COMPUTED.format(name=name, sql=_in_postgresql(template.format(**names)))
        for name, template in query.computed.items()
    ]
    with_items = ",\n".join([*frames, *computed])
    try:
        cursor = connection.execute(f"WITH {with_items}\n{_in_postgresql(query.template.format(**names))}".encode())
    except psycopg.errors.RaiseException as error:
        if INEXACT in str(error):
            raise SparkTooNarrow("The double takes a value for too wide.") from error
        raise
    columns = tuple(column.name for column in cursor.description or ())
    if WEIGHT not in columns:
        return _table(columns, cursor.fetchall(), weighted=False)
    return _table(columns[:-1], [(*row, int(weight)) for *row, weight in cursor])


def _in_postgresql(text: str) -> str:
    for theirs, ours in IN_POSTGRESQL.items():
        text = re.sub(theirs, ours, text)
    return text


def _bytewise(connection: psycopg.Connection[Any], query: str) -> str:
    """List the columns of a frame; texts are equal where their bytes are, as in Spark."""
    columns = connection.execute(f"SELECT * FROM (\n{query}\n) AS f LIMIT 0".encode()).description or ()
    return ", ".join(
        f'{column.name} COLLATE "C" AS {column.name}' if column.type_display in TEXTS else column.name
        for column in columns
    )


def _netted(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    net: Counter[tuple[Any, ...]] = Counter()
    for *content, weight in rows:
        net[tuple(content)] += weight
    return [(*content, weight) for content, weight in net.items() if weight]


def _table(columns: tuple[str, ...], rows: list[tuple[Any, ...]], weighted: bool = True) -> pa.Table:
    types = [pa.string()] * len(columns) + ([pa.int64()] if weighted else [])
    arrays = [pa.array([row[i] for row in rows], type=each) for i, each in enumerate(types)]
    return pa.Table.from_arrays(arrays, names=[*columns, *([WEIGHT] if weighted else [])])


@contextmanager
def local_client(dsn: str, **settings: Any) -> Iterator[tuple[Client, LocalEngine]]:
    """Open a client that refreshes through a LocalEngine; yield both."""
    engine = LocalEngine(dsn)
    client = Client(Settings.from_environment(dsn, **settings))
    client._engine = engine  # type: ignore[assignment]
    try:
        client.verify_catalog()
        yield client, engine
    finally:
        client.close()
