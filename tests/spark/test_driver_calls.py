"""Calls from Python to Spark's driver: each takes a fraction of a millisecond, so that hundreds are felt."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from py4j.clientserver import ClientServerConnection

import pytrickle
from tests.conftest import Database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

# What one further table costs: its options and its ranges, its view, and what is kept of it.
CALLS_PER_READ = 12
MEMORY_MANAGEMENT = "m\n"
TABLES = "abcde"
QUERIES = {
    joins: "SELECT a.k, count(*) AS n, sum(a.x) AS s FROM a "
    + " ".join(f"JOIN {table} ON {table}.k = a.k" for table in TABLES[1 : joins + 1])
    + " GROUP BY a.k"
    for joins in (1, 2, 4)
}


@contextmanager
def counted_calls() -> Iterator[list[str]]:
    """List the commands that are sent while the block runs, but those that only release objects."""
    commands: list[str] = []
    send = ClientServerConnection.send_command

    def counted(connection: ClientServerConnection, command: str, *arguments: Any) -> Any:
        if not command.startswith(MEMORY_MANAGEMENT):
            commands.append(command)
        return send(connection, command, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientServerConnection, "send_command", counted)
        yield commands


def test_a_further_table_costs_few_calls_and_a_further_term_none(db: Database, spark: "SparkSession") -> None:
    for table in TABLES:
        db.execute(f"CREATE TABLE {table} AS SELECT n % 10 AS k, n AS x FROM generate_series(1, 30) AS n")
    calls: dict[tuple[int, int], int] = {}
    with pytrickle.connect(db.dsn, spark, engine="spark") as client:
        for joins, query in QUERIES.items():
            client.create_stream_table(f"joined_{joins}", query, refresh_mode="DIFFERENTIAL")
        client.tick()
        for changed in ("a", TABLES):
            for table in changed:
                db.execute(f"UPDATE {table} SET x = x + 1 WHERE k = 1")
            for joins in QUERIES:
                terms = min(len(changed), joins + 1)
                with counted_calls() as commands:
                    result = client.refresh(f"joined_{joins}")
                assert (result.action, result.engine, result.error) == ("DIFFERENTIAL", "spark", None)
                calls[joins, terms] = len(commands)
        assert all(client.verify(f"joined_{joins}").matches for joins in QUERIES)
    for joins, more in ((2, 1), (4, 3)):
        assert calls[joins, 1] <= calls[1, 1] + more * CALLS_PER_READ, calls
    # With all of n tables changed, the changes of n, the tables and what their old states lack of them are read.
    assert calls[4, 5] <= calls[1, 1] + (3 * 5 - 2) * CALLS_PER_READ, calls
