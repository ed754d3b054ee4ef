"""Queries that refresh differentially after each of some changes, and then are what PostgreSQL answers."""

from collections.abc import Mapping, Sequence

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences


def assert_differential(db: Database, tables: str, queries: Mapping[str, str], changes: Sequence[str]) -> None:
    """Create the tables and a stream table for each query; refresh and compare after each change, to the text."""
    db.execute(tables)
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        for name, query in queries.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        client.tick()
        for change in changes:
            db.execute(change)
            assert {result.action for result in client.tick()} <= {"DIFFERENTIAL", "NO_DATA"}
            for name, query in queries.items():
                assert not differences(connection, name, query, True), (name, change)
