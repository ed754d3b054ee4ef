"""Gating: deciding about stream tables whose sources must agree."""

import psycopg
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pytrickle.catalog import stream_table as catalog
from pytrickle.client.client import Client

TABLES = 20


@pytest.fixture(scope="module", params=("none", "gate", "hold_back"))
def mode(request: pytest.FixtureRequest, connection: psycopg.Connection, client: Client) -> str:
    """Stream tables of one gating mode over two sources of a group."""
    mode = str(request.param)
    for side in ("a", "b"):
        connection.execute(f"CREATE TABLE public.{mode}_{side} (id int PRIMARY KEY, v int)".encode())
    sources = [f"public.{mode}_a", f"public.{mode}_b"]
    connection.execute("SELECT pgtrickle.create_watermark_group(%s, %s)", [mode, sources])
    query = f"SELECT a.id, b.v FROM public.{mode}_a AS a JOIN public.{mode}_b AS b ON b.id = a.id"
    for number in range(TABLES):
        client.create_stream_table(f"public.{mode}_{number}", query, watermark_gating=mode)
    for source in sources:
        connection.execute("SELECT pgtrickle.advance_watermark(%s, now())", [source])
    client.tick()
    return mode


@pytest.mark.benchmark(group=f"gating: reading {TABLES} decisions")
def test_decisions_are_read(benchmark: BenchmarkFixture, connection: psycopg.Connection, mode: str) -> None:
    tables = benchmark(catalog.stream_tables, connection)
    assert sum(table.decision.gating == mode for table in tables) == TABLES
