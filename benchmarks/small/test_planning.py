"""Planning: reading a definition, and writing the delta of a join with a grouping."""

import psycopg
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.small.shop import open_shop
from pytrickle.catalog import stream_table as catalog
from pytrickle.catalog.server_probe import server_probe
from pytrickle.client.client import Client
from pytrickle.plan.analysis import analyse
from pytrickle.plan.query.meaning import understood

pytestmark = pytest.mark.benchmark(group="planning")


@pytest.fixture(scope="module")
def report(connection: psycopg.Connection, client: Client) -> str:
    """A loaded stream table over a join, with changes that wait."""
    shop = open_shop(connection)
    client.create_stream_table("shop.report", shop.query)
    client.refresh("shop.report")
    shop.change(connection, 10)
    return "shop.report"


def test_a_definition_is_analysed(benchmark: BenchmarkFixture, connection: psycopg.Connection, report: str) -> None:
    definition = catalog.definition(connection, catalog.resolve_name(connection, report))

    def read() -> bool:
        with server_probe(connection) as probe:
            return analyse(understood(definition, probe), probe).query is not None

    assert benchmark(read)


def test_a_refresh_is_planned_and_explained(benchmark: BenchmarkFixture, client: Client, report: str) -> None:
    explanation = benchmark.pedantic(client.explain, [report], rounds=20, warmup_rounds=2)
    assert "DIFFERENTIAL" in explanation.text
