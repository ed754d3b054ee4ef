"""What the demo shows while it runs: a live table on a terminal, a few plain lines elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from rich.console import Group
from rich.text import Text

from pytrickle.catalog.reports import Status, StreamTableStatus, WatermarkRow, WatermarkStatusRow
from pytrickle.demo.checks import Tally
from pytrickle.demo.jobs import Job
from pytrickle.demo.reports import GROUP, MODES, SOURCES, report_name

LATEST = 6
MakeTable: TypeAlias = Callable[..., Any]
"""What makes an empty table of the names of its columns, of which it may leave some out: `cli.show.columns`."""


@dataclass(frozen=True, slots=True)
class Scene:
    """All there is to show at one moment; before the first refresh nothing says how much time is `left`.

    Less than none is left while the demo goes on since it has not shown yet what it is to show.
    """

    status: Status
    tallies: Mapping[str, Tally]
    jobs: Sequence[Job]
    left: timedelta | None

    @property
    def time(self) -> str:
        """Say how long it goes on."""
        if self.left is None:
            return "Starting the refresher"
        if self.left > timedelta(0):
            return f"{self.left.total_seconds():3.0f} s to go"
        return "Going on until the reports have differed"


def live_view(scene: Scene, columns: MakeTable) -> Group:
    """Return everything there is to see at this moment, as one renderable."""
    return Group(
        Text(f"pytrickle demo: two loaders, three reports over the same join. {scene.time.strip()}."),
        Text(),
        _sources(columns, scene.status),
        _group_line(_group(scene.status)),
        Text(),
        _reports(columns, scene.status, scene.tallies),
        Text("\nThe latest refreshes", style="bold"),
        _jobs(columns, scene.jobs[-LATEST:]),
    )


def plain_lines(scene: Scene, told: int = 0) -> tuple[str, ...]:
    """Return the same as `live_view` says: lines for the group, the reports, and the refreshes not yet `told`."""
    status, tallies = scene.status, scene.tallies
    watermarks = ", ".join(f"{mark.source} {clock(mark.watermark)}" for mark in _watermarks(status))
    tables = {table.stream_table: table for table in status.stream_tables}
    return (
        f"{scene.time}. {watermarks or 'no watermark yet'}. {_group_line(_group(status))}",
        *(_report_line(mode, tables[report_name(mode)], tallies[mode]) for mode in MODES),
        *(_job_line(job) for job in scene.jobs[told:]),
    )


def summary(
    columns: MakeTable, tallies: Mapping[str, Tally], refreshes: Mapping[str, int], verified: Mapping[str, bool]
) -> Group:
    """Return the closing table: what each report showed, how fresh it was, and whether it equals its query."""
    table = columns("report", "refreshes", "checks", "incomplete", "at worst", "mean age", "verify")
    for mode, tally in tallies.items():
        table.add_row(
            mode,
            str(refreshes.get(report_name(mode), 0)),
            str(tally.looks),
            str(tally.looks_incomplete),
            f"{tally.worst} orders",
            seconds(tally.mean_age),
            "matches" if verified.get(mode) else "DIFFERS",
        )
    return Group(Text("Orders shown without their lines, as seen by the demo's own checks", style="bold"), table)


def clock(moment: datetime | None) -> str:
    """Return a moment as local time of day, or a dash."""
    return f"{moment.astimezone():%H:%M:%S}" if moment else "–"


def seconds(duration: timedelta | None) -> str:
    """Return a duration in seconds, or a dash."""
    return f"{duration.total_seconds():.1f} s" if duration is not None else "–"


def _watermarks(status: Status) -> tuple[WatermarkRow, ...]:
    return tuple(row for row in status.watermarks if row.source in SOURCES)


def _group(status: Status) -> WatermarkStatusRow:
    return next(row for row in status.groups if row.group_name == GROUP)


def _group_line(group: WatermarkStatusRow) -> str:
    state = {"aligned": "aligned", "apart": "misaligned", "waiting": "not started"}[group.state]
    reason = f": {group.reason}" if group.reason else ""
    return f"{group.group_name} {state}, lag {seconds(group.lag)}{reason}"


def _report_line(mode: str, table: StreamTableStatus, tally: Tally) -> str:
    return (
        f"      {mode:9} {table.decision:7} shows {tally.last.shown:3} orders, {tally.last.incomplete:2} without lines"
        f" (some in {tally.looks_incomplete} of {tally.looks} checks), effective watermark"
        f" {clock(table.effective_watermark)}"
    )


def _job_line(job: Job) -> str:
    return (
        f"      {job.report}: {job.title}, {job.changes} changed rows read through {clock(job.through)}"
        f" (LSN {job.lsn}), {job.written} written, {job.milliseconds} ms"
    )


def _jobs(columns: MakeTable, jobs: Sequence[Job]) -> Any:
    names = ("refresh", "by", "changed rows read", "through", "LSN", "rows written", "ms")
    table = columns(*names, spare=("LSN", "through", "ms", "by"))
    for job in jobs:
        read = (str(job.changes), clock(job.through), job.lsn or "–")
        table.add_row(job.report, job.title, *read, str(job.written), str(job.milliseconds))
    return table


def _sources(columns: MakeTable, status: Status) -> Any:
    table = columns("source", "watermark", "behind the clock", "advanced at", spare=("advanced at",))
    for row in _watermarks(status):
        behind = status.as_of - row.watermark if row.watermark else None
        table.add_row(row.source, clock(row.watermark), seconds(behind), clock(row.advanced_at))
    return table


def _reports(columns: MakeTable, status: Status, tallies: Mapping[str, Tally]) -> Any:
    names = ("report", "decision", "effective watermark", "orders", "without lines", "in checks", "newest order")
    spare = ("effective watermark", "in checks", "newest order")
    table = columns(*names, "reason", sentences=("reason",), spare=spare)
    tables = {row.stream_table: row for row in status.stream_tables}
    for mode in MODES:
        row, tally = tables[report_name(mode)], tallies[mode]
        table.add_row(
            mode,
            row.decision,
            clock(row.effective_watermark),
            str(tally.last.shown),
            Text(str(tally.last.incomplete), style="bold red" if tally.last.incomplete else "green"),
            f"{tally.looks_incomplete} of {tally.looks}",
            seconds(tally.last.age),
            row.reason,
        )
    return table
