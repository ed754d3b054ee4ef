"""Refreshes from change to commit, of a filter and of a grouping, beside the materialized view of the same query."""

from functools import partial

import psycopg
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.small.shop import FILTER, GROUPING, open_shop
from pytrickle.client.client import Client

ROUNDS = {10: 20, 2_000: 7}
QUERIES = {"filter": FILTER, "grouping": GROUPING}


@pytest.fixture(scope="module", params=QUERIES)
def shown(request: pytest.FixtureRequest, connection: psycopg.Connection, client: Client) -> str:
    """A loaded stream table, and a view of the same query."""
    name, query = str(request.param), QUERIES[request.param]
    open_shop(connection)
    client.create_stream_table(f"shop.{name}", query, refresh_mode="DIFFERENTIAL")
    client.refresh(f"shop.{name}")
    connection.execute(f"CREATE MATERIALIZED VIEW shop.{name}_view AS {query}".encode())
    return name


@pytest.mark.parametrize("rows", ROUNDS)
@pytest.mark.parametrize("way", ["view", "stream table"])
def test_changes_are_shown(
    benchmark: BenchmarkFixture, connection: psycopg.Connection, client: Client, shown: str, rows: int, way: str
) -> None:
    benchmark.group = f"apply: {shown}, {rows:,} rows changed"
    change = partial(open_shop(connection).change, connection, rows)
    if way == "view":
        work = partial(connection.execute, f"REFRESH MATERIALIZED VIEW shop.{shown}_view".encode())
        benchmark.pedantic(work, setup=lambda: _nothing(change()), rounds=ROUNDS[rows], warmup_rounds=1)
        return
    work = partial(client.refresh, f"shop.{shown}")
    result = benchmark.pedantic(work, setup=lambda: _nothing(change()), rounds=ROUNDS[rows], warmup_rounds=1)
    assert result.action == "DIFFERENTIAL"


def _nothing(changed: int) -> None:
    """A setup that returns something would give it to what is measured."""
    assert changed
