"""How results look on a screen; every function turns a value into something Rich can print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from pytrickle.catalog.freshness_reports import FreshnessRow
from pytrickle.catalog.reports import (
    HistoryEntry,
    HistoryRow,
    RefreshGroupRow,
    Status,
    StreamTableStatus,
    WatermarkGroupRow,
    WatermarkRow,
    WatermarkStatusRow,
)
from pytrickle.catalog.table_state import reason_for, state_of
from pytrickle.catalog.trouble_reports import ProblemRow
from pytrickle.cli.remedies import on_the_command_line
from pytrickle.cli.show import render_feeds, render_sources
from pytrickle.cli.show.columns import Columns, columns
from pytrickle.cli.values import cell, distance, length, moment, reached, sentence, through
from pytrickle.readable import counted

if TYPE_CHECKING:
    from pytrickle.inspect.as_of import AsOf
    from pytrickle.inspect.doctor.check import Check
    from pytrickle.inspect.verify import VerifyResult
    from pytrickle.refresh.values import RefreshResult

_COLOURS = {
    "ok": "green",
    "aligned": "green",
    "gated": "yellow",
    "waiting": "yellow",
    "apart": "yellow",
    "initializing": "cyan",
    "paused": "magenta",
    "frozen": "magenta",
    "broken": "red",
    "error": "red",
    "failed": "bold red",
    "skip": "yellow",
    "skipped": "yellow",
}
_NONE = "-"


def status(state: Status) -> RenderableType:
    """Draw the status screen: groups, sources and stream tables, and how old the snapshot is."""
    age = length(max(datetime.now(UTC) - state.as_of, timedelta(0)))
    # Incidents stand in a block of their own.
    problems = tuple(row for row in state.problems if not row.incident)
    return Group(
        *_block("Watermark groups", groups(state.groups), state.groups),
        *_block("Sources", watermarks(state.watermarks, state.as_of), state.watermarks),
        *_block(
            "Stream tables", stream_tables(state.stream_tables, state.problems, state.freshness), state.stream_tables
        ),
        *(_block("Problems", render_sources.problems(problems), problems) if problems else ()),
        *(_block("Gated sources", render_sources.gates(state.gates), state.gates) if state.gates else ()),
        *(_block("Feeds", render_feeds.feeds(state.feeds), state.feeds) if state.feeds else ()),
        *_late_changes(state),
        *((Text(_defects(state), style="red"),) if state.planner_defects else ()),
        *(_block("Alerts", render_sources.alerts(state.alerts), state.alerts) if state.alerts else ()),
        Text(f"Snapshot taken at {moment(state.as_of)}, {age} ago", style="dim"),
    )


def _defects(state: Status) -> str:
    named = (f"{row.stream_table}: {row.planner_defect}" for row in state.stream_tables if row.planner_defect)
    return "\n".join((f"Planner defects: {state.planner_defects}. Please report them with their tracebacks.", *named))


def _late_changes(state: Status) -> tuple[Text, ...]:
    counts = [f"{row.stream_table} {row.late_changes}" for row in state.stream_tables if row.late_changes]
    return (Text(f"Late changes in the ledger: {', '.join(counts)}", style="yellow"),) if counts else ()


def groups(rows: Iterable[WatermarkStatusRow]) -> Columns:
    """Draw where every watermark group stands."""
    table = columns(
        *("group", "state", "lag", "tolerance", "effective watermark", "agreed watermark", "reason"),
        sentences=("reason",),
        spare=("agreed watermark", "tolerance", "effective watermark"),
    )
    for row in rows:
        effective = through(row.effective_watermark, row.effective_batch) or _NONE
        agreed = through(row.agreed_watermark, row.agreed_batch) or _NONE
        lag = distance(row.lag, row.batch_lag) or _NONE
        tolerance = distance(row.tolerance, row.batch_tolerance)
        table.add_row(row.group_name, coloured(row.state), lag, tolerance, effective, agreed, row.reason)
    return table


def watermarks(rows: Iterable[WatermarkRow], now: datetime) -> Columns:
    """Draw every source's watermark, the time since it last advanced, and since its loader last called."""
    table = columns("source", "watermark", "last advance", "last seen", "by", spare=("by", "last advance"))
    for row in rows:
        ages = (f"{length(max(now - when, timedelta(0)))} ago" for when in (row.advanced_at, row.last_seen_at))
        table.add_row(row.source, through(row.watermark, row.batch), *ages, row.advanced_by)
    return table


def stream_tables(
    rows: Iterable[StreamTableStatus], problems: Iterable[ProblemRow] = (), freshness: Iterable[FreshnessRow] = ()
) -> Columns:
    """Draw every stream table's mode, effective watermark, state, and the one sentence that explains it."""
    behind = {row.pgt_id: row for row in freshness}
    known = {problem.stream_table: problem for problem in problems if not problem.incident}
    table = columns(
        *("stream table", "state", "data is", "effective watermark", "mode", "gating", "by", "reason"),
        sentences=("reason",),
        spare=("by", "gating", "mode", "effective watermark"),
    )
    for row in rows:
        since = age(row, behind.get(row.pgt_id))
        mode = " ".join((row.refresh_mode, row.schedule, *((row.tier,) if row.tier in {"warm", "cold"} else ())))
        effective = through(row.effective_watermark, row.effective_batch) or _NONE
        problem = known.get(row.stream_table)
        state = _state(row, problem)
        said = problem.problem if problem and state in ("broken", "waiting") else row.last_error
        reason = said or reason_for(row, behind.get(row.pgt_id)) or row.reason
        done_by = row.last_engine or _NONE
        table.add_row(row.stream_table, coloured(state), since, effective, mode, row.watermark_gating, done_by, reason)
    return table


def _state(row: StreamTableStatus, problem: ProblemRow | None) -> str:
    """Name the state: it is broken by a lasting problem, and not well before a refresh that computes it anew."""
    if problem and problem.lasting:
        return "broken"
    state = state_of(row)
    return "waiting" if problem and state == "ok" else state


def age(row: StreamTableStatus, found: FreshnessRow | None) -> str:
    """Say how far a stream table is behind its sources, and why; where nobody asked, how old its data is."""
    if row.staleness is None:
        return _NONE
    if found is None:
        return f"{length(row.staleness)} old"
    return "fresh" if found.status == "fresh" else f"{length(found.lag)} behind ({found.cause})"


def history(rows: Sequence[HistoryRow]) -> RenderableType:
    """Draw refreshes, newest first."""
    if not rows:
        return "No refresh yet."
    table = columns(
        *("started", "stream table", "action", "status", "by", "took", "inserted", "deleted", "reason"),
        sentences=("reason",),
        spare=("by", "deleted", "inserted", "status"),
    )
    for row in rows:
        took = None if row.finished_at is None else row.finished_at - row.started_at
        counts = (_NONE if count is None else str(count) for count in (row.rows_inserted, row.rows_deleted))
        started = moment(row.started_at)
        status = coloured(row.status.lower())
        initiator = row.initiated_by.lower()
        table.add_row(
            started, row.stream_table, row.action, status, initiator, _length(took), *counts, row.error or row.reason
        )
    return table


def watermark_history(rows: Sequence[HistoryEntry]) -> RenderableType:
    """Draw the advances of one source, newest first."""
    if not rows:
        return "This source never advanced."
    table = columns("watermark", "advanced at", "by", "lsn", spare=("lsn", "by"))
    for row in rows:
        table.add_row(through(row.watermark, row.batch), moment(row.advanced_at), row.advanced_by, row.lsn or _NONE)
    return table


def group_list(rows: Sequence[WatermarkGroupRow]) -> RenderableType:
    """Draw the watermark groups with their sources and tolerance."""
    if not rows:
        return "No watermark group yet."
    table = columns("group", "tolerance", "stale after", "idle after", "sources", sentences=("sources",))
    for row in rows:
        stale = _NONE if row.stale_after is None else f"{length(row.stale_after)}, {row.on_stale}"
        tolerance = distance(row.tolerance, row.batch_tolerance)
        table.add_row(row.group_name, tolerance, stale, _length(row.idle_after), ", ".join(row.sources))
    return table


def refresh_group_list(rows: Sequence[RefreshGroupRow]) -> RenderableType:
    """Draw the refresh groups with their stream tables."""
    if not rows:
        return "No refresh group yet."
    table = columns("refresh group", "isolation", "stream tables", sentences=("stream tables",))
    for row in rows:
        table.add_row(row.group_name, row.isolation, ", ".join(row.members))
    return table


def results(rows: Sequence[RefreshResult]) -> RenderableType:
    """Draw the results of a tick, one line each."""
    return Group(*(result(row) for row in rows)) if rows else "Nothing is due."


def result(row: RefreshResult) -> Text:
    """Draw one refresh in one line: the table, what was done, how many rows changed, how long it took, and why."""
    parts = [f"{row.stream_table}  {row.action}"]
    if row.rows_inserted or row.rows_deleted:
        parts.append(f"+{row.rows_inserted} -{row.rows_deleted}")
    if (complete := through(row.effective_watermark, row.effective_batch)) is not None:
        parts.append(f"through {complete}")
    parts.append(f"{length(row.duration)} by {row.engine}" if row.engine else length(row.duration))
    parts.extend(filter(None, (sentence(row.error or row.reason),)))
    return Text("  ".join(parts), style=_COLOURS.get(row.action.lower(), ""))


def verified(rows: Sequence[VerifyResult]) -> RenderableType:
    """Draw what comparing stream tables with their defining queries found."""
    if not rows:
        return "No stream table yet."
    reason = ("reason",) if any(row.pending or row.error or row.withheld or row.ties for row in rows) else ()
    table = columns("stream table", "state", "missing rows", "unexpected rows", *reason, sentences=reason)
    for row in rows:
        table.add_row(row.stream_table, *_compared(row)[: 3 + len(reason)])
    return table


def _compared(row: VerifyResult) -> tuple[Text | str, ...]:
    if row.error:
        return Text("broken", style="bold red"), "-", "-", row.error
    if row.pending:
        return Text("pending", style="yellow"), "-", "-", row.pending
    outcome = Text("matches", style="green") if row.matches else Text("differs", style="bold red")
    reason = f"but for {counted(row.withheld, 'change')} of frozen rows, which the ledger has" if row.withheld else ""
    if row.ties:
        reason = "but for the choice among rows that tie, which the query leaves open"
    return outcome, str(row.missing), str(row.unexpected), reason


def as_of(found: AsOf) -> RenderableType:
    """Draw the rows of a query as of an earlier watermark, and say at which watermark each source was read."""
    table = columns(*found.columns)
    for row in found.rows:
        table.add_row(*(_NONE if value is None else Text(cell(value)) for value in row))
    read = (f"{source} at {_NONE if at is None else reached(at)}" for source, at in found.watermarks.items())
    return Group(table if found.rows else "No rows.", Text(f"Read {', '.join(read)}", style="dim"))


def checks(rows: Sequence[Check]) -> RenderableType:
    """Draw the doctor's findings, each problem with its remedy."""
    lines = []
    for row in rows:
        mark = ("ok       ", "green") if row.ok else ("problem  ", "bold red")
        lines.append(Text.assemble(mark, (row.name, "bold"), f": {row.detail}"))
        if row.remedy and not row.ok:
            lines.append(Text(f"         remedy: {on_the_command_line(row.remedy)}"))
    return Group(*lines)


def _block(title: str, table: Columns, rows: Sequence[object]) -> tuple[RenderableType, ...]:
    return (Text(title, style="bold"), table if rows else Text("  none"), Text(""))


def coloured(word: str) -> Text:
    """Return the name of a state in its colour."""
    return Text(word, style=_COLOURS.get(word, ""))


def _length(value: timedelta | None) -> str:
    return _NONE if value is None else length(value)
