"""The measurements: after each change every engine refreshes a stream table of its own, and the job by hand runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import psycopg
from pyspark.sql import SparkSession

from benchmarks.baselines import create_baselines, refresh_materialized_view
from benchmarks.clock import Timing, stopwatch
from benchmarks.data import Orders
from benchmarks.engines.hand import buffer_of, increments, whole
from benchmarks.engines.processor import processor_seconds
from pytrickle.client.client import Client
from pytrickle.refresh.values import RefreshResult

ENGINES = ("postgres", "spark", "auto")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one way took, once for each round: seconds of the clock, and of the server's processors."""

    seconds: list[float] = field(default_factory=list)
    server: list[float] = field(default_factory=list)
    done_by: set[str] = field(default_factory=set)

    @property
    def clock(self) -> Timing:
        """The seconds of the rounds that count."""
        return Timing(tuple(self.seconds[1:]))

    @property
    def processor(self) -> Timing:
        """The same of the server's processors."""
        return Timing(tuple(self.server[1:]))


@dataclass(frozen=True, slots=True)
class Bench:
    """What a measurement works with; `postmaster` is the server's first process."""

    client: Client
    spark: SparkSession
    connection: psycopg.Connection
    dsn: str
    orders: Orders
    postmaster: int

    def prepare(self, rounds: int) -> dict[str, Cost]:
        """Create the tables, a stream table for each engine, and the view; return what whole refreshes took."""
        self.orders.create(self.connection)
        create_baselines(self.connection, self.orders)
        costs = {way: Cost() for way in (*ENGINES, "by hand")}
        for engine in ENGINES:
            options = {"refresh_mode": "DIFFERENTIAL", "engine": engine}
            self.client.create_stream_table(self._name(engine), self.orders.query, **options)
        for _ in range(rounds + 1):
            for engine in ENGINES:
                self._take_refresh(costs[engine], self._name(engine))
                self.connection.execute("SELECT pgtrickle.reinitialize_stream_table(%s)", [self._name(engine)])
            by_hand = partial(whole, self.spark, self.connection, self.dsn, self.orders)
            self._take(costs["by hand"], by_hand)
        for engine in ENGINES:
            self._refresh(self._name(engine))
        return costs

    def measure(self, rows: int, rounds: int) -> dict[str, Cost]:
        """Change about so many rows, and take what follows; the first round warms up."""
        costs = {way: Cost() for way in (*ENGINES, "by hand", "view")}
        for _ in range(rounds + 1):
            after = self._position()
            self.orders.change(self.connection, rows)
            self.orders.tidy(self.connection)
            # First, as the changes are removed once all stream tables have taken them in.
            hand = (self.spark, self.connection, self.dsn, self.orders, after)
            self._take(costs["by hand"], partial(increments, *hand))
            for engine in ENGINES:
                self._take_refresh(costs[engine], self._name(engine))
            self._take(costs["view"], partial(refresh_materialized_view, self.connection, self.orders))
        return costs

    def _name(self, engine: str) -> str:
        return f"{self.orders.schema}.report_{engine}"

    def _refresh(self, name: str) -> RefreshResult:
        result = self.client.refresh(name)
        assert result.error is None and result.action != "NO_DATA"
        return result

    def _take_refresh(self, cost: Cost, name: str) -> None:
        """Take one refresh: its seconds until the commit, and what the server did, the cleaning of buffers included."""
        before = processor_seconds(self.postmaster)
        result = self._refresh(name)
        cost.seconds.append(result.duration.total_seconds())
        cost.server.append(processor_seconds(self.postmaster) - before)
        cost.done_by.add(str(result.engine))

    def _take(self, cost: Cost, work: Callable[[], object]) -> None:
        before = processor_seconds(self.postmaster)
        cost.seconds.append(stopwatch(work))
        cost.server.append(processor_seconds(self.postmaster) - before)

    def _position(self) -> int:
        query = f"SELECT coalesce(max(pgt_pos), 0) FROM {buffer_of(self.connection, self.orders)}"
        row = self.connection.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])


def sizes(orders: int) -> Sequence[int]:
    """Return the numbers of changed rows that are measured."""
    return (100, orders // 1000, orders // 100, orders // 10)
