"""Advancing a watermark, beside the smallest transaction that writes."""

from datetime import UTC, datetime, timedelta
from itertools import count

import psycopg
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

pytestmark = pytest.mark.benchmark(group="advance")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def loads(connection: psycopg.Connection) -> str:
    """A source, and beside it a table that is written instead."""
    connection.execute("CREATE TABLE public.loads (id int); CREATE TABLE public.notes (at timestamptz)")
    return "public.loads"


def test_a_row_is_written_instead(benchmark: BenchmarkFixture, connection: psycopg.Connection, loads: str) -> None:
    benchmark(connection.execute, "INSERT INTO public.notes VALUES (now())")


def test_a_watermark_is_advanced(benchmark: BenchmarkFixture, connection: psycopg.Connection, loads: str) -> None:
    moments = (BEGIN + timedelta(seconds=number) for number in count())
    advance = "SELECT pgtrickle.advance_watermark(%s, %s)"
    benchmark(lambda: connection.execute(advance, [loads, next(moments)]))
