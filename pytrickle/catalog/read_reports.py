"""Read the catalog's functions into frozen values.

Every function takes an open connection, on which the first statement begins a transaction, and only reads; errors of
the database leave as the errors of this package.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import Field, fields
from datetime import datetime
from decimal import Decimal
from typing import TypeVar

from psycopg import Connection, sql

from pytrickle.catalog.feed_reports import FeedRow
from pytrickle.catalog.freshness_reports import AlertLimitsRow, FreshnessRow
from pytrickle.catalog.late_reports import EventTimeRow, LateRow, WatermarkMetrics
from pytrickle.catalog.reports import (
    BootstrapRow,
    BufferRow,
    Dag,
    DagRow,
    DependencyRow,
    HistoryEntry,
    HistoryRow,
    RefreshGroupRow,
    SourceGateRow,
    Status,
    StreamTableStatus,
    WatermarkGroupRow,
    WatermarkRow,
    WatermarkStatusRow,
)
from pytrickle.catalog.running_reports import RunningRow
from pytrickle.catalog.trouble_reports import AlertRow, ProblemRow, SourceLimitsRow
from pytrickle.catalog.withdrawn_watermarks import WithdrawnWatermark
from pytrickle.database import AGAIN_SAFE, USERS_PATH, filled, has_any_bytes, translate_errors
from pytrickle.readable import Rows

Row = TypeVar("Row")

_TEXT, _TEXTS = "readable_text({name}::text)", "readable_texts({name}::text[])"
_READABLE: dict[object, str] = {str: _TEXT, str | None: _TEXT, tuple[str, ...]: _TEXTS}


def stream_tables(connection: Connection) -> tuple[StreamTableStatus, ...]:
    """Return the status of every stream table, ordered by name."""
    return _rows(connection, _call("pgt_status"), StreamTableStatus, order_by=("stream_table",))


def watermarks(connection: Connection) -> tuple[WatermarkRow, ...]:
    """Return the newest watermark of every source that ever advanced, ordered by source."""
    return _rows(connection, _call("watermarks"), WatermarkRow, order_by=("source",))


def watermark_history(connection: Connection, source: str) -> tuple[HistoryEntry, ...]:
    """Return every advance of one source, newest first; raise when there is no such table."""
    with _users_path(connection):
        return _rows(connection, _call("watermark_history", source), HistoryEntry)


def newest_advances(connection: Connection, source: str, limit: int = 1000) -> tuple[HistoryEntry, ...]:
    """Return the newest advances of one source, newest first; raise when there is no such table."""
    with _users_path(connection):
        return _rows(connection, _call("watermark_history", source), HistoryEntry, limit=limit)


def withdrawn_watermarks(connection: Connection) -> tuple[WithdrawnWatermark, ...]:
    """Return every watermark that was taken back, newest first."""
    return _rows(connection, _call("withdrawn_watermarks"), WithdrawnWatermark)


def group_history(connection: Connection, group_name: str) -> dict[str, tuple[HistoryEntry, ...]] | None:
    """Return every advance of each source of a group, read in one snapshot; None where there is no such group.

    The connection must not be inside a transaction yet.
    """
    with _one_snapshot(connection):
        groups = {group.group_name: group for group in watermark_groups(connection)}
        if group_name not in groups:
            return None
        return {source: watermark_history(connection, source) for source in groups[group_name].sources}


def watermark_groups(connection: Connection) -> tuple[WatermarkGroupRow, ...]:
    """Return every watermark group, ordered by name."""
    return _rows(connection, _call("watermark_groups"), WatermarkGroupRow, order_by=("group_name",))


def refresh_groups(connection: Connection) -> tuple[RefreshGroupRow, ...]:
    """Return every refresh group, ordered by name."""
    return _rows(connection, _call("refresh_groups"), RefreshGroupRow, order_by=("group_name",))


def watermark_status(connection: Connection, group: str | None = None) -> tuple[WatermarkStatusRow, ...]:
    """Return where every watermark group stands, or one; raise UnknownWatermarkGroup where that does not exist."""
    rows = _rows(connection, _call("watermark_status"), WatermarkStatusRow, order_by=("group_name",))
    found = rows if group is None else Rows(row for row in rows if row.group_name == group)
    if group is not None and not found:
        with translate_errors():
            connection.execute("SELECT pgtrickle_private.refuse_unknown_group(%s)", (group,))
    return found


def feeds(connection: Connection) -> tuple[FeedRow, ...]:
    """Return every feed, ordered by name."""
    return _rows(connection, _call("feeds"), FeedRow, order_by=("feed",))


def source_gates(connection: Connection) -> tuple[SourceGateRow, ...]:
    """Return the sources under a gate, ordered by name."""
    return _rows(connection, _call("source_gates"), SourceGateRow, only="gated")


def bootstrap_status(connection: Connection) -> tuple[BootstrapRow, ...]:
    """Return every source with each stream table made of it, ordered by source."""
    return _rows(connection, _call("bootstrap_status"), BootstrapRow)


def event_times(connection: Connection) -> tuple[EventTimeRow, ...]:
    """Return every source whose event time is declared, ordered by name."""
    return _rows(connection, _call("event_times"), EventTimeRow, order_by=("source",))


def late_rows(
    connection: Connection, source: str | None = None, status: str | None = None, limit: int = 20
) -> tuple[LateRow, ...]:
    """Return the newest `limit` late rows: of one source or of all that may be read, in one status or in any."""
    with _users_path(connection):
        return _rows(connection, _call("late_rows", source, status, limit), LateRow)


def watermark_metrics(connection: Connection) -> tuple[WatermarkMetrics, ...]:
    """Return the metrics of every source that ever advanced or has an event time, ordered by name."""
    return _rows(connection, _call("watermark_metrics"), WatermarkMetrics, order_by=("source",))


def alerts(connection: Connection, limit: int = 20) -> tuple[AlertRow, ...]:
    """Return the open incidents, then the newest of those that ended."""
    return _rows(connection, _call("alerts", limit), AlertRow)


def alert_limits(connection: Connection) -> tuple[AlertLimitsRow, ...]:
    """Return the limits beyond which an alert is raised: those of all first, then of groups and sources."""
    return _rows(connection, _call("alert_limits"), AlertLimitsRow)


def source_limits(connection: Connection, source: str) -> tuple[SourceLimitsRow, ...]:
    """Return the limits on the silence of a source, its own first; raise when there is no such table."""
    with _users_path(connection):
        return _rows(connection, _call("source_limits", source), SourceLimitsRow)


def freshness(connection: Connection) -> tuple[FreshnessRow, ...]:
    """Return how far every stream table is behind its sources, and why, ordered by name."""
    return _rows(connection, _call("freshness"), FreshnessRow, order_by=("stream_table",))


def history(connection: Connection, name: str | None = None, limit: int = 20) -> tuple[HistoryRow, ...]:
    """Return the newest `limit` refreshes of one stream table, or of all when `name` is None."""
    with _users_path(connection):
        return _rows(connection, _call("refresh_history", name, limit), HistoryRow)


def running(connection: Connection) -> tuple[RunningRow, ...]:
    """Return the stream tables that are being refreshed now, by whomever."""
    return _rows(connection, _call("running"), RunningRow)


def dependencies(connection: Connection) -> tuple[DependencyRow, ...]:
    """Return the dependency tree, one row per stream table and source."""
    return _rows(connection, _call("dependencies"), DependencyRow)


def relations(connection: Connection) -> tuple[DagRow, ...]:
    """Return every source and stream table, each below what it reads."""
    return _rows(connection, _call("dag"), DagRow)


def change_buffers(connection: Connection) -> tuple[BufferRow, ...]:
    """Return the change buffer of every captured source, ordered by source."""
    rows = _rows(connection, _call("change_buffer_sizes"), BufferRow, order_by=("source_table",))
    return Rows({row.source_table: row for row in rows}.values())


def problems(connection: Connection) -> tuple[ProblemRow, ...]:
    """Return what keeps stream tables from being refreshed, or has them computed anew, ordered by name."""
    return _rows(connection, _call("problems"), ProblemRow, order_by=("stream_table",))


def status(connection: Connection) -> Status:
    """Return all that the status screen shows, read in one snapshot of its own transaction.

    The connection must not be inside a transaction yet.
    """
    with _one_snapshot(connection) as as_of:
        return Status(
            stream_tables=stream_tables(connection),
            groups=watermark_status(connection),
            watermarks=watermarks(connection),
            as_of=as_of,
            gates=source_gates(connection),
            feeds=feeds(connection),
            alerts=Rows(alert for alert in alerts(connection) if alert.closed_at is None),
            problems=problems(connection),
            freshness=freshness(connection),
        )


def dag(connection: Connection) -> Dag:
    """Return the graph of sources and stream tables, read in one snapshot as `status` is."""
    with _one_snapshot(connection) as as_of:
        groups = watermark_status(connection), refresh_groups(connection)
        return Dag(relations(connection), stream_tables(connection), *groups, as_of)


@contextmanager
def _one_snapshot(connection: Connection) -> Iterator[datetime]:
    """Let all that the block reads be of one snapshot; yield when that was taken."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        ((taken,),) = connection.execute("SELECT transaction_timestamp()").fetchall()
        yield taken


@contextmanager
def _users_path(connection: Connection) -> Iterator[None]:
    """Let what a user names be found by the user's path; the block's statement writes its own names with schemas."""
    connection.execute(USERS_PATH)
    yield
    connection.execute(AGAIN_SAFE)


def _call(function: str, *arguments: str | int | None) -> sql.Composed:
    """Write a call of one of the catalog's functions."""
    return filled(
        "pgtrickle.{function}({arguments})",
        function=sql.Identifier(function),
        arguments=sql.SQL(", ").join(map(sql.Literal, arguments)),
    )


def _rows(
    connection: Connection,
    call: sql.Composed,
    row_type: Callable[..., Row],
    order_by: tuple[str, ...] = (),
    only: str | None = None,
    limit: int | None = None,
) -> tuple[Row, ...]:
    """Select a table function's columns by the fields of `row_type`, so that their names are spelled once.

    With `only`, return only the rows in which that column is true; with `limit`, only so many.
    """
    read: list[sql.Composable] = [_read(connection, each) for each in fields(row_type)]  # type: ignore[arg-type]
    query = filled(
        "SELECT {names} FROM {call} AS r WHERE {only} {order} LIMIT {limit}",
        names=sql.SQL(", ").join(read),
        call=call,
        only=sql.Identifier(only) if only else "true",
        order=filled("ORDER BY {names}", names=_listed(order_by)) if order_by else "",
        limit=sql.Literal(limit),
    )
    with translate_errors():
        return Rows(row_type(*map(_frozen, row)) for row in connection.execute(query))


def _read(connection: Connection, column: Field[object]) -> sql.Composed:
    """Read a column; in a database whose texts may be any bytes, one that is text without what is no UTF-8."""
    name = sql.Identifier(column.name)
    if (readable := _READABLE.get(column.type)) and has_any_bytes(connection):
        return filled(f"pgtrickle_private.{readable} AS {{name}}", name=name)
    return filled("{name}", name=name)


def _listed(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _frozen(value: object) -> object:
    """Return arrays as tuples, and numerics as integers: the functions report whole numbers only."""
    if isinstance(value, Decimal):
        return int(value)
    return tuple(value) if isinstance(value, list) else value
