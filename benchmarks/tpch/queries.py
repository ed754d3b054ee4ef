"""One TPC-H query as a stream table and as a materialized view: created, refreshed, compared."""

from collections.abc import Iterable
from dataclasses import dataclass

import psycopg
from psycopg import sql

from benchmarks.tpch.database import SHARED
from pytrickle.client.client import Client
from pytrickle.refresh.values import RefreshResult


@dataclass(frozen=True, slots=True)
class Query:
    """A query by its name (q01 to q22), which is also that of its stream table."""

    name: str
    text: str

    @property
    def title(self) -> str:
        """Return the query's number in the specification."""
        return f"Q{int(self.name[1:])}"

    @property
    def materialized_view(self) -> sql.Identifier:
        """Return the materialized view of the same query."""
        return sql.Identifier(f"{self.name}_view")

    def create(self, connection: psycopg.Connection, client: Client) -> None:
        """Create both and load both."""
        self.create_view(connection)
        client.create_stream_table(self.name, self.text)
        client.refresh(self.name)

    def create_view(self, connection: psycopg.Connection) -> None:
        """Create and load the materialized view."""
        connection.execute(
            sql.SQL("CREATE MATERIALIZED VIEW {} AS ").format(self.materialized_view) + sql.SQL(self.text)
        )

    def drop(self, connection: psycopg.Connection, client: Client) -> None:
        """Drop both, or what there is of them."""
        connection.execute(sql.SQL("DROP MATERIALIZED VIEW IF EXISTS {}").format(self.materialized_view))
        if any(table.stream_table == f"public.{self.name}" for table in client.stream_tables()):
            client.drop_stream_table(self.name)

    def refresh(self, client: Client) -> RefreshResult:
        """Refresh the stream table."""
        return client.refresh(self.name)

    def recompute(self, connection: psycopg.Connection) -> None:
        """Refresh the materialized view."""
        connection.execute(sql.SQL("REFRESH MATERIALIZED VIEW {}").format(self.materialized_view))

    def equal(self, connection: psycopg.Connection, stream_table: str | None = None) -> bool:
        """Compare the stream table with the materialized view, as multisets; both were refreshed on the same data."""
        stored, expected = sql.Identifier(stream_table or self.name), self.materialized_view
        difference = "(TABLE {} EXCEPT ALL TABLE {}) UNION ALL (TABLE {} EXCEPT ALL TABLE {})"
        statement = sql.SQL(difference).format(stored, expected, expected, stored)
        return connection.execute(statement).fetchone() is None


def read_queries(names: Iterable[str] = ()) -> tuple[Query, ...]:
    """Return the queries of the given names, or all; raise ValueError for an unknown name."""
    known = {path.stem: Query(path.stem, path.read_text()) for path in sorted((SHARED / "queries").glob("*.sql"))}
    if unknown := sorted(set(names) - known.keys()):
        raise ValueError(f"There is no query {unknown[0]}; there are {', '.join(known)}.")
    return tuple(query for name, query in known.items() if name in (set(names) or known))
