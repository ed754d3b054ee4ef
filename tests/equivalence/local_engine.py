"""The engine's double: runs a plan's reads by psycopg in the exported snapshot and joins in Python, without a JVM."""

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
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.refresh_plan import PostgresQuery, RefreshPlan
from pytrickle.plan.spark.reads import Frame, SparkLeaf
from pytrickle.plan.spark.terms import SparkTerm

Row = dict[str, Any]


@dataclass(slots=True)
class LocalEngine:
    """Computes plans as SparkEngine does, but never writes staging tables.

    `plans` keeps what was asked for, `reads` how often each text was read.
    """

    dsn: str
    plans: list[RefreshPlan] = field(default_factory=list)
    reads: Counter[str] = field(default_factory=Counter)

    def prepare(self) -> None:
        """It is always there."""

    def compute(
        self, plan: RefreshPlan, snapshot: str, settings: tuple[str, ...], staging: str | None = None
    ) -> Staged:
        self.plans.append(plan)
        keyed = self._reading(plan.keyed, snapshot, settings) if plan.keyed else None
        if plan.read is not None:
            return Staged(self._reading(plan.read, snapshot, settings), keyed)
        with self._pinned(snapshot, settings) as connection:
            return Staged(_Joins(connection, self.reads).rows(plan), keyed)

    def _reading(self, reading: PostgresQuery, snapshot: str, settings: tuple[str, ...]) -> pa.Table:
        with self._pinned(snapshot, (*settings, *reading.settings)) as connection:
            cursor = connection.execute(reading.query.encode())
            rows = cursor.fetchall()
        self.reads[reading.query] += 1
        if reading.weighted:
            return _table(reading.columns, _netted(rows))
        return _table(reading.columns, rows, weighted=False)

    @contextmanager
    def _pinned(self, snapshot: str, settings: tuple[str, ...]) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.dsn) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'".encode())
            for statement in settings:
                connection.execute(statement.encode())
            yield connection


@dataclass(slots=True)
class _Joins:
    """Frames read once, joined term by term in nested loops."""

    connection: psycopg.Connection[Any]
    reads: Counter[str]
    known: dict[str, list[Row]] = field(default_factory=dict)

    def rows(self, plan: RefreshPlan) -> pa.Table:
        columns = tuple(name for name, _, _ in plan.join[0].output)
        weighted = [row for term in plan.join for row in self._term(term)]
        return _table(columns, _netted(weighted))

    def _term(self, term: SparkTerm) -> Iterator[tuple[Any, ...]]:
        partial: list[tuple[Row, ...]] = [()]
        for leaf, keys in zip(term.leaves, term.keys, strict=True):
            found: dict[tuple[Any, ...], list[Row]] = {}
            for row in self._leaf(leaf):
                found.setdefault(tuple(row[own] for own, _, _ in keys), []).append(row)
            wanted = [(left, tuple(left[at][other] for _, at, other in keys)) for left in partial]
            partial = [(*left, row) for left, key in wanted if None not in key for row in found.get(key, ())]
        for joined in partial:
            weight = -1 if term.negated else 1
            for row in joined:
                weight *= row[WEIGHT]
            yield (*(joined[at][column] for _, at, column in term.output), weight)

    def _leaf(self, leaf: SparkLeaf) -> list[Row]:
        return [row for frame in leaf.frames for row in self._frame(frame)]

    def _frame(self, frame: Frame) -> list[Row]:
        if frame.sql not in self.known:
            self.reads[frame.sql] += 1
            cursor = self.connection.execute(frame.sql.encode())
            names = [column.name for column in cursor.description or ()]
            self.known[frame.sql] = [dict(zip(names, row, strict=True)) for row in cursor]
        sign = -1 if frame.negated else 1
        return [{**row, WEIGHT: sign * row[WEIGHT]} for row in self.known[frame.sql]]


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
