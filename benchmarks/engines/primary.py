"""What a refresh costs the primary: processor seconds of the server under either engine, for joins of large tables."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import psycopg

from benchmarks.clock import Timing
from benchmarks.conditions import machine
from benchmarks.engines.cluster import CHANGE, NAME, QUERY, TABLES
from benchmarks.engines.processor import processor_seconds
from benchmarks.tpch.database import Database
from benchmarks.tpch.queries import read_queries
from pytrickle.client.client import Client

ENGINES = ("postgres", "spark")
TPCH = ("q03", "q05", "q09", "q18")
PERCENT = 1.0
# What the second engine may cost the server, as a part of what the first one does.
HALF = 0.5


@dataclass(slots=True)
class Cost:
    """What refreshes of one stream table took: seconds until the commit, and those of the server's processors."""

    seconds: list[float] = field(default_factory=list)
    server: list[float] = field(default_factory=list)

    def shown(self) -> str:
        """Write both medians as cells of a table."""
        return f"{Timing(tuple(self.seconds)).median:.2f} | {Timing(tuple(self.server)).median:.2f}"


@dataclass(frozen=True, slots=True)
class Report:
    """One query under one engine; `spark_joins` tells whether Spark read sources and joined them."""

    title: str
    stream_table: str
    engine: str
    changed: Cost = field(default_factory=Cost)
    whole: Cost = field(default_factory=Cost)
    spark_joins: set[bool] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Primary:
    """Measures on one server, whose first process is `postmaster`."""

    client: Client
    connection: psycopg.Connection
    postmaster: int
    database: Database
    rows: int

    def measure(self, rounds: int) -> str:
        """Change, and refresh under either engine in turns, then refresh as a whole; return the section."""
        load = os.getloadavg()[0]
        reports = self._create()
        for number in range(rounds + 1):
            self._change()
            for report in reports:
                self._take(report, report.changed if number else Cost())
        for _ in range(rounds):
            for report in reports:
                self.connection.execute("SELECT pgtrickle.reinitialize_stream_table(%s)", [report.stream_table])
                self._take(report, report.whole)
        return TEMPLATE.format(
            rows=self.rows,
            orders=self.database.orders,
            percent=PERCENT,
            rounds=rounds,
            changed="\n".join(_lines(reports, _changed)),
            whole="\n".join(_lines(reports, _whole)),
            verdict=" ".join(_verdicts(reports)),
            conditions="; ".join(machine(load, "server and Spark share it").values()),
        )

    def _create(self) -> list[Report]:
        self.connection.execute(TABLES.format(rows=self.rows).encode())
        self.connection.execute("VACUUM ANALYZE large.invoices, large.payments")
        self.database.create()
        texts = {"Two large tables": (NAME, QUERY)}
        texts |= {query.title: (query.name, query.text) for query in read_queries(TPCH)}
        reports = []
        for title, (name, text) in texts.items():
            for engine in ENGINES:
                report = Report(title, f"{name}_{engine}", engine)
                self.client.create_stream_table(report.stream_table, text, refresh_mode="DIFFERENTIAL", engine=engine)
                self._take(report, Cost())
                reports.append(report)
        return reports

    def _change(self) -> None:
        self.connection.execute(CHANGE.replace("% 10 = 3", f"% {round(100 / PERCENT)} = 3").encode())
        self.connection.execute("VACUUM ANALYZE large.payments")
        self.database.change(PERCENT)
        self.database.tidy()

    def _take(self, report: Report, cost: Cost) -> None:
        report.spark_joins.add(bool(self.client.explain(report.stream_table).data["spark_reads"]))
        before = processor_seconds(self.postmaster)
        result = self.client.refresh(report.stream_table)
        cost.server.append(processor_seconds(self.postmaster) - before)
        cost.seconds.append(result.duration.total_seconds())
        assert (result.engine, result.error) == (report.engine, None)


def _pairs(reports: Sequence[Report]) -> Iterator[tuple[Report, Report]]:
    yield from zip(reports[::2], reports[1::2], strict=True)


def _ratio(postgres: Cost, spark: Cost) -> float:
    return Timing(tuple(spark.server)).median / max(Timing(tuple(postgres.server)).median, 0.01)


def _lines(reports: Sequence[Report], of: Callable[[Report], Cost]) -> Iterator[str]:
    for postgres, spark in _pairs(reports):
        cells = f"{of(postgres).shown()} | {of(spark).shown()} | {_ratio(of(postgres), of(spark)):.2f}"
        yield f"| {postgres.title} | {cells} | {'Spark' if spark.spark_joins == {True} else 'PostgreSQL'} |"


def _verdicts(reports: Sequence[Report]) -> Iterator[str]:
    for kind, of in (("after changes", _changed), ("as a whole", _whole)):
        missed = [p.title for p, s in _pairs(reports) if _ratio(of(p), of(s)) > HALF]
        met = f"At most half was wanted, and missed {kind} by {', '.join(missed)}." if missed else ""
        yield met or f"At most half was wanted {kind}: met by all."


def _changed(report: Report) -> Cost:
    return report.changed


def _whole(report: Report) -> Cost:
    return report.whole


TEMPLATE = """{rows:,} payments joined with as many invoices, and TPC-H with {orders:,} orders, {percent:g} % of the
rows of every table changed: each query as two stream tables, one for each engine, refreshed in turns. Seconds until
the commit, then the processor seconds of all of PostgreSQL's processes; medians of {rounds} rounds after a first one.
The last columns compare the processor seconds under `spark` with those under `postgres`, and say who joined under
`spark`. {verdict}

All that PostgreSQL does for Spark is to write rows out, apply the result, and keep the changes. Where the ratio is
above 1, writing the rows out takes it longer than joining them itself: after changes it finds what these join by its
indexes, and a whole query it joins from memory. Spark spares the server where joining takes longest: large tables
without a selective condition.

| after changes | `postgres` | server | `spark` | server | ratio | joined by |
|---|---:|---:|---:|---:|---:|---|
{changed}

| as a whole | `postgres` | server | `spark` | server | ratio | joined by |
|---|---:|---:|---:|---:|---:|---|
{whole}

{conditions}.
"""
