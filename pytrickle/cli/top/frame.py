"""How `pytrickle top` looks: exactly as many lines as the terminal has, none of them wider than it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from rich.text import Text

from pytrickle.catalog.reports import Status, StreamTableStatus
from pytrickle.catalog.table_state import reason_for, state_of
from pytrickle.cli.show import render
from pytrickle.cli.show.columns import Columns, columns, wrapped
from pytrickle.cli.show.folded import folded
from pytrickle.cli.top.view import View
from pytrickle.cli.top.watch import Seen
from pytrickle.cli.values import distance, length, moment, sentence, through

KEYS = ("Keys: up down choose   e explain   p pause   r refresh   ? help   q quit", "Keys: ? help   q quit")
TEXT_KEYS = ("Keys: up down scroll   Escape back   q quit", "Keys: Escape back   q quit")
NONE = "-"
NAME = "  stream table"
# News that the database answers again is old after so long.
RECENT = timedelta(seconds=10)
# A sentence gets so many lines at most.
MOST_LINES = 3


def frame(seen: Seen, view: View, now: datetime, size: tuple[int, int]) -> list[Text]:
    """Return the lines of the screen; the keys stand in the last one."""
    width, height = size
    top = [*_head(seen, now), Text("")]
    foot = [*_news(view, width), _keys(view, width)]
    room = max(0, height - len(top) - len(foot))
    body = _text(view, width, room) if view.shows_text else _tables(seen, view, now, width, room)
    lines = [*top, *body[:room], *(Text("") for _ in range(room - len(body))), *foot]
    return [_cropped(line, width) for line in lines[-height:]]


def _head(seen: Seen, now: datetime) -> list[Text]:
    """Say whether what is shown is of now."""
    if seen.lost_at:
        since = f"The database does not answer since {moment(seen.lost_at)}; trying again."
        return [Text(since, style="bold red"), Text(" ".join((seen.trouble or "").split()), style="red")]
    if seen.state is None:
        return [Text("Reading …")]
    busy = ", ".join(f"{row.stream_table} for {_age(row.since, now)}" for row in seen.running)
    line = Text(f"pytrickle top   {moment(seen.state.as_of)}   ", style="bold")
    if seen.back_at and now - seen.back_at < RECENT:
        line.append("The database answers again.   ", style="green")
    return [line, Text(f"Refreshing {busy}." if busy else "Nothing is being refreshed.")]


def _tables(seen: Seen, view: View, now: datetime, width: int, room: int) -> list[Text]:
    """Draw groups and sources as far as they leave most of the room to the stream tables."""
    if seen.state is None:
        return []
    found = _stream_tables(seen, view, now)
    reason = _reason(seen.state, view, width)
    above = [*_block("Watermark groups", _groups(seen.state), width), *_block("Sources", _sources(seen.state), width)]
    least = min(len(found.rows), 5) + 2 + len(reason)
    above = above[: max(0, room - least)]
    listed = _fitted(found, width)
    heading, rows = listed[:1], listed[1:]
    shown = max(1, room - len(above) - len(reason) - 2)
    first = _first(view, seen.state.stream_tables, len(rows), shown)
    return [*above, Text("Stream tables", style="bold"), *heading, *rows[first : first + shown], *reason]


def _first(view: View, tables: Sequence[StreamTableStatus], count: int, shown: int) -> int:
    """Return the first row to show, so that the chosen one is among them."""
    at = next((i for i, row in enumerate(tables) if row.stream_table == view.chosen), 0)
    return max(0, min(at - shown // 2, count - shown))


def _block(title: str, table: Columns, width: int) -> list[Text]:
    return [Text(title, style="bold"), *_fitted(table, width), Text("")] if table.rows else []


def _groups(state: Status) -> Columns:
    table = columns(
        *("group", "state", "lag", "tolerance", "watermarks from", "to"), spare=("tolerance", "to", "watermarks from")
    )
    for row in state.groups:
        table.add_row(
            row.group_name,
            render.coloured(row.state),
            distance(row.lag, row.batch_lag) or NONE,
            distance(row.tolerance, row.batch_tolerance) or NONE,
            through(row.min_watermark, row.min_batch) or NONE,
            through(row.max_watermark, row.max_batch) or NONE,
        )
    return table


def _sources(state: Status) -> Columns:
    table = columns("source", "watermark", "last advance", "last seen", spare=("last seen",))
    for row in state.watermarks:
        table.add_row(
            row.source,
            through(row.watermark, row.batch) or NONE,
            f"{_age(row.advanced_at, state.as_of)} ago",
            f"{_age(row.last_seen_at, state.as_of)} ago",
        )
    return table


def _stream_tables(seen: Seen, view: View, now: datetime) -> Columns:
    table = columns(
        *(NAME, "state", "data is", "last refresh", "did", "engine", "effective watermark"),
        spare=("effective watermark", "did", "engine", "last refresh", "data is"),
    )
    busy = {row.stream_table for row in seen.running}
    broken = {row.stream_table for row in seen.state.problems if row.lasting} if seen.state else set()
    behind = {row.pgt_id: row for row in seen.state.freshness} if seen.state else {}
    for row in seen.state.stream_tables if seen.state else ():
        state = "broken" if row.stream_table in broken else state_of(row)
        named = Text("refreshing", style="cyan") if row.stream_table in busy else render.coloured(state)
        table.add_row(
            Text(f"> {row.stream_table}", style="bold") if row.stream_table == view.chosen else f"  {row.stream_table}",
            named,
            render.age(row, behind.get(row.pgt_id)),
            NONE if row.last_refresh_at is None else f"{_age(row.last_refresh_at, now)} ago",
            (row.last_action or NONE).lower(),
            row.last_engine or row.engine,
            through(row.effective_watermark, row.effective_batch) or NONE,
        )
    return table


def _reason(state: Status, view: View, width: int) -> list[Text]:
    """Say of the chosen stream table why it is as it is."""
    problem = next((row.problem for row in state.problems if row.stream_table == view.chosen), None)
    row = next((row for row in state.stream_tables if row.stream_table == view.chosen), None)
    if row is None:
        return [Text("There is no stream table yet: pytrickle create makes one.")]
    behind = next((each for each in state.freshness if each.pgt_id == row.pgt_id), None)
    why = sentence(problem or row.last_error or reason_for(row, behind) or row.reason or "")
    return wrapped(Text(f"{row.stream_table}: {' '.join(why.split())}", style="dim"), width)[:MOST_LINES]


def _text(view: View, width: int, room: int) -> list[Text]:
    lines = folded("\n".join(view.text[view.first_line :][:room]), width).split("\n")
    return [Text(view.title, style="bold"), *map(Text, lines)]


def _news(view: View, width: int) -> list[Text]:
    return wrapped(Text(view.news, style="bold red" if view.is_trouble else "green"), width)[:MOST_LINES]


def _keys(view: View, width: int) -> Text:
    long, short = TEXT_KEYS if view.shows_text else KEYS
    return Text(long if len(long) <= width else short, style="dim")


def _fitted(table: Columns, width: int) -> list[Text]:
    """Draw a table with the columns for which there is room; what is still too wide is cut."""
    kept = table.fitting(width)
    return [*table.rows_of(kept)]


def _cropped(line: Text, width: int) -> Text:
    line = line.copy()
    line.truncate(width, overflow="ellipsis")
    line.no_wrap, line.overflow = True, "ignore"
    return line


def _age(since: datetime, now: datetime) -> str:
    return length(max(now - since, timedelta(0)))
