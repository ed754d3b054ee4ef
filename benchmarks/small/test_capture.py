"""Capture: single rows and a COPY, into a table that is captured and into one that is not."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.capture.cost import CAPTURED, PLAIN, capture_tables, copy_rows, empty, insert_one_by_one, rows_of

ROWS, INSERTS = 50_000, 2_000
tables = pytest.mark.parametrize("table", [PLAIN, CAPTURED], ids=["without", "with"])


@pytest.fixture(scope="module")
def buffer(connection: psycopg.Connection) -> Iterator[sql.Composable]:
    """The change buffer of the captured table."""
    with capture_tables(connection) as name:
        yield name


@tables
@pytest.mark.benchmark(group=f"capture: COPY of {ROWS:,} rows")
def test_rows_are_copied(
    benchmark: BenchmarkFixture, connection: psycopg.Connection, buffer: sql.Composable, table: str
) -> None:
    rows = rows_of(ROWS)
    setup = lambda: empty(connection, buffer)  # noqa: E731
    benchmark.pedantic(copy_rows, [connection, table, rows], setup=setup, rounds=5, warmup_rounds=1)


@tables
@pytest.mark.benchmark(group=f"capture: {INSERTS:,} single rows")
def test_single_rows_are_inserted(
    benchmark: BenchmarkFixture, connection: psycopg.Connection, buffer: sql.Composable, table: str
) -> None:
    setup = lambda: empty(connection, buffer)  # noqa: E731
    benchmark.pedantic(insert_one_by_one, [connection, table, INSERTS], setup=setup, rounds=7, warmup_rounds=1)
