"""Ticks over forty stream tables: without a change, and after one row of one source changed."""

from functools import partial

import psycopg
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.scale.tables import Fleet
from pytrickle.client.client import Client

FLEET = Fleet(sources=4, tables=40)
pytestmark = pytest.mark.benchmark(group=f"tick over {FLEET.tables} stream tables")


@pytest.fixture(scope="module")
def fleet(connection: psycopg.Connection, client: Client) -> Fleet:
    """A loaded fleet."""
    FLEET.create_sources(connection)
    for name, query in FLEET.definitions():
        client.create_stream_table(name, query)
    client.tick()
    return FLEET


def test_nothing_changed(benchmark: BenchmarkFixture, client: Client, fleet: Fleet) -> None:
    results = benchmark.pedantic(client.tick, rounds=20, warmup_rounds=2)
    assert {result.action for result in results} == {"NO_DATA"}


def test_one_row_changed(
    benchmark: BenchmarkFixture, connection: psycopg.Connection, client: Client, fleet: Fleet
) -> None:
    change = partial(fleet.change_one, connection, 0)
    results = benchmark.pedantic(client.tick, setup=change, rounds=10, warmup_rounds=2)
    assert {result.action for result in results} == {"NO_DATA", "DIFFERENTIAL"}
