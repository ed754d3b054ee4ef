"""Refreshes all queries both ways after changes of several rates; a query that fails or is too slow is left behind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
from psycopg import sql

from benchmarks.clock import stopwatch
from benchmarks.tpch.database import Database
from benchmarks.tpch.queries import Query
from benchmarks.tpch.results import Figures
from pytrickle.client.client import Client
from pytrickle.errors import PytrickleError

Report = Callable[[str], None]
WARMING = 3


@dataclass(slots=True)
class Measurement:
    """Measures the queries on one database; `figures` are by rate and query, `failures` and `unequal` by query."""

    database: Database
    client: Client
    queries: tuple[Query, ...]
    timeout: int
    report: Report
    figures: dict[tuple[float, str], Figures] = field(default_factory=dict)
    changed: dict[float, int] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    unequal: set[str] = field(default_factory=set)

    def create(self) -> None:
        """Create and load a stream table and a materialized view of every query."""
        limit_statements(self.database.connection, self.timeout)
        for query in self.queries:
            self.report(f"Loading {query.title} …")
            with self._limited(query):
                query.create(self.database.connection, self.client)

    def measure(self, percent: float, rounds: int) -> None:
        """Change, then refresh every query both ways, `rounds` times after three rounds that do not count.

        After two slow refreshes AUTO tries the other way, and then knows how long either takes.
        """
        for number in range(1 - WARMING, rounds + 1):
            self.report(f"{percent} % changed, {f'round {number} of {rounds}' if number > 0 else 'warming up'} …")
            self.changed[percent] = self.database.change(percent)
            self.database.tidy()
            for query in self.queries:
                if query.name not in self.failures:
                    self._refresh(query, percent, counts=number > 0)

    def _refresh(self, query: Query, percent: float, counts: bool) -> None:
        with self._limited(query):
            result = query.refresh(self.client)
            taken = stopwatch(query.recompute, self.database.connection)
            if not query.equal(self.database.connection):
                self.unequal.add(query.name)
            if counts:
                figures = self.figures.setdefault((percent, query.name), Figures())
                figures.actions.add(result.action)
                figures.differential.append(result.duration.total_seconds())
                figures.materialized_view.append(taken)

    @contextmanager
    def _limited(self, query: Query) -> Iterator[None]:
        """Limit the statements; note the query that failed and drop it, so that it disturbs no more."""
        connection = self.database.connection
        self._set_own_timeout(self.timeout)
        try:
            yield
        except (PytrickleError, psycopg.Error) as error:
            side = "stream table" if isinstance(error, PytrickleError) else "materialized view"
            self.failures[query.name] = f"{side}: {str(error).splitlines()[0]}"
            self.report(f"{query.title} failed: {self.failures[query.name]}")
            query.drop(connection, self.client)
        finally:
            self._set_own_timeout(0)

    def _set_own_timeout(self, seconds: int) -> None:
        """Limit the statements of the benchmark's own session, whose changes may take as long as they take."""
        self.database.connection.execute(sql.SQL("SET statement_timeout = {}").format(sql.Literal(seconds * 1000)))


def limit_statements(connection: psycopg.Connection, seconds: int) -> None:
    """Limit the statements of all sessions of the server."""
    connection.execute(sql.SQL("ALTER SYSTEM SET statement_timeout = {}").format(sql.Literal(seconds * 1000)))
    connection.execute("SELECT pg_reload_conf()")
