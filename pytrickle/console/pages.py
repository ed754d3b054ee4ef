"""What each page shows, read for it and ready to be written into its template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
from sqlalchemy import Connection

from pytrickle.catalog import read_reports
from pytrickle.catalog.history_pages import Kind, Page, history_page, slowest
from pytrickle.catalog.reports import StreamTableStatus, WatermarkGroupRow
from pytrickle.catalog.trouble_reports import ProblemRow
from pytrickle.console.bars import bars
from pytrickle.console.database import Database, Seen
from pytrickle.console.failures import Failure, failure_of
from pytrickle.console.freshness import freshness
from pytrickle.console.graph import graph, shown_state
from pytrickle.console.staircase import Advances, Scene, advances, chart
from pytrickle.errors import PytrickleError

# Drawn twice: a sheet for wide screens, and one for narrow ones whose letters are as large.
SHEETS = ((1040.0, 300.0), (360.0, 260.0))
BARS = ((1040.0, 130.0, 160), (360.0, 120.0, 40))
SPANS = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "1d": timedelta(days=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
ENOUGH = 12
LATELY = timedelta(days=1)
FEW, SLOWEST, INCIDENTS, ADVANCES = 20, 10, 200, 20


class Missing(Exception):
    """There is no such page, or nothing of that name."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a page sees it: the database, what was seen of it a moment ago, and the query of the address."""

    database: Database
    seen: Seen
    query: Mapping[str, str]

    @property
    def problems(self) -> tuple[ProblemRow, ...]:
        """What is wrong with stream tables, but for what an open alert tells in the same words."""
        told = {(alert.subject, alert.sentence) for alert in self.seen.status.alerts}
        return tuple(row for row in self.seen.status.problems if (row.stream_table, row.problem) not in told)

    @property
    def broken(self) -> frozenset[str]:
        """The stream tables that lost what they need, or wait for one that did."""
        return frozenset(row.stream_table for row in self.problems if row.lasting)

    def read(self, reading: Callable[[Connection], Any]) -> Any:
        """Return what a function reads over a connection."""
        return self.database.read(reading)

    def report(self, reading: Callable[[psycopg.Connection], Any]) -> Any:
        """Return what one of the catalog's reports says."""
        return self.database.report(reading)

    def number(self, name: str) -> int | None:
        """Return a number of the query; raise Missing where it is none."""
        given = self.query.get(name)
        if given is None:
            return None
        if not (given.isascii() and given.isdigit() and len(given) < 19):
            raise Missing
        return int(given)

    def kind(self) -> Kind:
        """Return which refreshes are wanted."""
        try:
            return Kind(self.query.get("show", Kind.DONE))
        except ValueError:
            raise Missing from None


Shown = dict[str, Any]


def overview(asked: Asked) -> Shown:
    """Show the graph, and all that status shows."""
    dag = asked.report(read_reports.dag)
    states = {row.stream_table: shown_state(row, asked.broken) for row in asked.seen.status.stream_tables}
    counts = Counter(states.values()).most_common()
    shown = {"graph": graph(dag, asked.broken), "states": states, "counts": counts}
    return shown | {"problems": asked.problems, "freshness": asked.read(freshness)}


def table(asked: Asked) -> Shown:
    """Show one stream table: its state, why it is stale, its plan, and its history."""
    row = _table_named(asked)
    kind, before, after = asked.kind(), asked.number("before"), asked.number("after")
    page: Page = asked.read(lambda c: history_page(c, row.pgt_id, kind=kind, before=before, after=after, size=FEW))
    newest: Page = asked.read(lambda c: history_page(c, row.pgt_id, kind=Kind.DONE, size=BARS[0][2]))
    relations = {each.relation: each for each in asked.report(read_reports.relations)}
    return {
        "row": row,
        "state": shown_state(row, asked.broken),
        "problem": next((each for each in asked.problems if each.stream_table == row.stream_table), None),
        "reads": relations[row.stream_table].reads if row.stream_table in relations else (),
        "read_by": sorted(name for name, each in relations.items() if row.stream_table in each.reads),
        "tables": {each.stream_table for each in asked.seen.status.stream_tables},
        "freshness": asked.read(freshness).get(row.stream_table),
        "plan": _plan(asked, row.stream_table),
        "bars": [bars(newest.attempts[:count], width, height) for width, height, count in BARS],
        **_paged(page, kind),
    }


def groups(asked: Asked) -> Shown:
    """Show where every watermark group stands."""
    return {"members": {row.group_name: row.sources for row in asked.report(read_reports.watermark_groups)}}


def group(asked: Asked) -> Shown:
    """Show one watermark group: the staircase of its sources, and the cut at which they agree."""
    known = {row.group_name: row for row in asked.report(read_reports.watermark_groups)}
    status = {row.group_name: row for row in asked.seen.status.groups}
    name = asked.query.get("name", "")
    if name not in known or name not in status:
        raise Missing
    row: WatermarkGroupRow = known[name]
    loading = [source for source in row.sources if source not in status[name].idle]
    tolerance = float(row.batch_tolerance or 0) if row.tolerance is None else row.tolerance.total_seconds()
    return {
        "row": row,
        "status": status[name],
        "marks": {each.source: each for each in asked.seen.status.watermarks},
        **_staircase(asked, loading, tolerance, row.tolerance is not None),
    }


def sources(asked: Asked) -> Shown:
    """Show the watermark of every source as numbers."""
    return {
        "metrics": asked.report(read_reports.watermark_metrics),
        "marks": {each.source: each for each in asked.seen.status.watermarks},
        "gates": {each.source: each for each in asked.seen.status.gates},
    }


def source(asked: Asked) -> Shown:
    """Show one source: its watermark over time, and its newest advances."""
    name = asked.query.get("name", "")
    relations = {row.relation: row for row in asked.report(read_reports.relations)}
    metrics = {row.source: row for row in asked.report(read_reports.watermark_metrics)}
    marks = {row.source: row for row in asked.seen.status.watermarks}
    gates = {row.source: row for row in asked.seen.status.gates}
    if not any(name in known for known in (relations, metrics, gates)):
        raise Missing
    is_time = name not in marks or marks[name].batch is None
    return {
        "name": name,
        "mark": marks.get(name),
        "metrics": metrics.get(name),
        "gate": gates.get(name),
        "groups": relations[name].watermark_groups if name in relations else (),
        "read_by": sorted(each.relation for each in relations.values() if name in each.reads),
        "newest": asked.report(lambda c: read_reports.newest_advances(c, name, ADVANCES)),
        **_staircase(asked, [name] if name in marks else [], 0.0, is_time),
    }


def refreshes(asked: Asked) -> Shown:
    """Show the slowest refreshes of the last day, and all, page by page."""
    kind, before, after = asked.kind(), asked.number("before"), asked.number("after")
    page: Page = asked.read(lambda c: history_page(c, kind=kind, before=before, after=after))
    slow = asked.read(lambda c: slowest(c, LATELY, SLOWEST))
    return {"slow": slow, "longest": max((each.duration for each in slow), default=None), **_paged(page, kind)}


def late(asked: Asked) -> Shown:
    """Show how much came too late for each source."""
    metrics = asked.report(read_reports.watermark_metrics)
    return {
        "event_times": asked.report(read_reports.event_times),
        "metrics": {row.source: row for row in metrics},
    }


def alerts(asked: Asked) -> Shown:
    """Show the open incidents, and those that ended last."""
    rows = asked.report(lambda c: read_reports.alerts(c, INCIDENTS))
    return {
        "open": [row for row in rows if row.closed_at is None],
        "ended": [row for row in rows if row.closed_at is not None],
    }


def feeds(asked: Asked) -> Shown:
    """Show every feed, which the status has already."""
    return {"rows": asked.seen.status.feeds}


def _table_named(asked: Asked) -> StreamTableStatus:
    for row in asked.seen.status.stream_tables:
        if row.stream_table == asked.query.get("name"):
            return row
    raise Missing


def _plan(asked: Asked, name: str) -> Mapping[str, Any] | Failure:
    """Return the data of an explanation, or why there is none."""
    try:
        return asked.database.explain(name).data
    except PytrickleError as error:
        return failure_of(error)


def _paged(page: Page, kind: Kind) -> Shown:
    longest = max((each.duration for each in page.attempts), default=None)
    return {"page": page, "longest_shown": longest, "kind": kind, "kinds": tuple(Kind)}


def _staircase(asked: Asked, names: list[str], tolerance: float, is_time: bool) -> Shown:
    found = {name: advances(asked.report(partial(read_reports.newest_advances, source=name))) for name in names}
    now = datetime.now(UTC).timestamp()
    span = asked.query.get("span") or _fitting(found, now)
    if span not in SPANS:
        raise Missing
    scene = Scene(found, tolerance, now - SPANS[span].total_seconds(), now, is_time)
    charts = [chart(scene, *sheet) for sheet in SHEETS] if any(found.values()) else []
    return {"charts": charts, "span": span, "spans": tuple(SPANS)}


def _fitting(history: Mapping[str, Advances], now: float) -> str:
    """Return the shortest time in which each source advanced often enough to see how it goes."""
    least = [steps[-min(ENOUGH, len(steps))].at for steps in history.values() if steps]
    since = min(least, default=now)
    return next((name for name, span in SPANS.items() if now - span.total_seconds() <= since), "30d")
