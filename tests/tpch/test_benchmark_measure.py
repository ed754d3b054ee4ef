"""The TPC-H benchmark measures what it can, notes what fails, and reports both."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.tpch.database import Database as Tpch
from benchmarks.tpch.measure import Measurement
from benchmarks.tpch.queries import Query, read_queries
from benchmarks.tpch.report import write_report
from benchmarks.tpch.results import Results
from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

ENDLESS = "SELECT count(*) AS n FROM lineitem a, lineitem b, lineitem c WHERE a.l_tax + b.l_tax + c.l_tax < -1"
SECONDS = 4
Measure = Callable[[Client, tuple[Query, ...]], Measurement]


@pytest.fixture
def measure(db: Database) -> Iterator[Measure]:
    """Measure some queries at one rate on a tiny database; the limit of a statement is some seconds."""
    tpch = Tpch(db.connect(), 600)
    tpch.create()

    def run(client: Client, queries: tuple[Query, ...]) -> Measurement:
        measurement = Measurement(tpch, client, queries, SECONDS, lambda message: None)
        measurement.create()
        measurement.measure(5, 2)
        return measurement

    yield run
    tpch.connection.execute("ALTER SYSTEM RESET statement_timeout")
    tpch.connection.execute("SELECT pg_reload_conf()")


@pytest.mark.repeats
def test_a_query_that_is_too_slow_leaves_the_others_alone(db: Database, measure: Measure, tmp_path: Path) -> None:
    queries = (*read_queries(["q01", "q06"]), Query("q99", ENDLESS), Query("q98", "SELECT random() AS r FROM region"))
    with local_client(db.dsn) as (client, _):
        done = measure(client, queries)
        assert [table.stream_table for table in client.stream_tables()] == ["public.q01", "public.q06"]
    assert done.failures.keys() == {"q98", "q99"}
    assert done.failures["q98"].startswith("stream table: ")
    assert done.failures["q99"].startswith("materialized view: ")
    assert done.unequal == set()
    assert {key: figures.actions for key, figures in done.figures.items()} == {
        (5, "q01"): {"DIFFERENTIAL"},
        (5, "q06"): {"DIFFERENTIAL"},
    }
    assert [len(figures.differential) for figures in done.figures.values()] == [2, 2]
    report = tmp_path / "report.md"
    write_report(results(done), "chart.png", report)
    lines = report.read_text().splitlines()
    assert [line.count("|") for line in lines if line.startswith("| Q")] == [7] * 4
    assert "| Q99 | failed | – | – | – | – |" in lines


def results(done: Measurement) -> Results:
    titles = {query.name: query.title for query in done.queries}
    unequal = frozenset(done.unequal)
    return Results({}, done.database.sizes(), 2, SECONDS, titles, done.figures, done.changed, done.failures, unequal)
