"""What is drawn of the catalog's graph: every relation with its state, and every watermark group."""

from __future__ import annotations

from pytrickle.catalog.reports import Dag, DagRow, StreamTableStatus, WatermarkStatusRow
from pytrickle.catalog.table_state import state_of
from pytrickle.cli.values import length, moment, sentence, through
from pytrickle.inspect.drawing.picture import Band, Box, Picture, Tone

_TONES = {
    "ok": Tone.GOOD,
    "aligned": Tone.GOOD,
    "initializing": Tone.NEW,
    "gated": Tone.WAITING,
    "waiting": Tone.WAITING,
    "apart": Tone.WAITING,
    "error": Tone.BAD,
}
_UNREMARKABLE = ("ok", "initializing")
_KINDS = {"TABLE": "table", "UNCAPTURED": "not captured, read as a whole"}
EMPTY = "No stream table yet; pytrickle create makes one."


def picture(dag: Dag) -> Picture:
    """Describe a graph in short words, ready to be drawn."""
    tables = {table.stream_table: table for table in dag.stream_tables}
    boxes = tuple(_box(row, tables.get(row.relation), _together(dag, row.relation)) for row in dag.relations)
    caption = f"As of {moment(dag.as_of)}." if boxes else EMPTY
    return Picture(boxes, tuple(map(_band, dag.groups)), caption)


def _together(dag: Dag, name: str) -> tuple[str, ...]:
    """Name the refresh groups of a stream table."""
    names = [group.group_name for group in dag.refresh_groups if name in group.members]
    return (f"refreshed together: {', '.join(names)}",) if names else ()


def _box(row: DagRow, table: StreamTableStatus | None, together: tuple[str, ...]) -> Box:
    reached = through(row.watermark, row.batch)
    complete = (f"complete through {reached}",) if reached else ()
    if table is None:
        return Box(row.relation, lines=(_KINDS[row.kind], *complete), groups=row.watermark_groups)
    state = state_of(table)
    lines = (_schedule(table), f"{table.watermark_gating}: {table.decision}", _last(row), *complete, *together)
    note = None if state in _UNREMARKABLE else table.last_error or table.reason
    return Box(row.relation, state, _tone(state), lines, note and sentence(note), row.reads)


def _schedule(table: StreamTableStatus) -> str:
    tier = (f"tier {table.tier}",) if table.tier != "hot" else ()
    paused = ("paused",) if table.paused else ()
    return ", ".join((table.schedule, *tier, *paused))


def _last(row: DagRow) -> str:
    if row.last_action is None:
        return "never refreshed"
    return row.last_action if row.last_duration is None else f"{row.last_action} took {length(row.last_duration)}"


def _band(group: WatermarkStatusRow) -> Band:
    return Band(group.group_name, group.state, _tone(group.state), group.reason and sentence(group.reason))


def _tone(state: str) -> Tone:
    return _TONES.get(state, Tone.PLAIN)
