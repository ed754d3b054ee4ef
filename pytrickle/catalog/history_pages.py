"""The history of refreshes, page by page: each begins where the one before it ended, however long the history is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, column, func, select, table, true

from pytrickle.database import translate_errors

PAGE = 50

_HISTORY = table(
    "refresh_history_info",
    *map(
        column,
        (
            *("refresh_id", "pgt_id", "stream_table", "action", "status", "initiated_by", "reason", "started_at"),
            *("duration_ms", "delta_rows", "rows_inserted", "rows_deleted", "sqlstate", "engine"),
        ),
    ),
    schema="pgtrickle",
).c


class Kind(StrEnum):
    """Which refreshes a page has: all attempts, those that were not skipped, or those that failed."""

    ALL = "all"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempted refresh without what its error says, which may quote rows; `sqlstate` tells its kind."""

    refresh_id: int
    stream_table: str
    action: str
    status: str
    initiated_by: str
    reason: str | None
    started_at: datetime
    milliseconds: float
    delta_rows: int | None
    rows_inserted: int | None
    rows_deleted: int | None
    sqlstate: str | None
    engine: str | None

    @property
    def duration(self) -> timedelta:
        """How long it took."""
        return timedelta(milliseconds=self.milliseconds)


@dataclass(frozen=True, slots=True)
class Page:
    """Attempts, newest first; `older` and `newer` are the numbers with which the pages beside it are asked for."""

    attempts: tuple[Attempt, ...]
    older: int | None
    newer: int | None


_READABLE = func.pgtrickle_private.readable_text
_COLUMNS = (
    *(_HISTORY.refresh_id, _READABLE(_HISTORY.stream_table), _HISTORY.action, _HISTORY.status, _HISTORY.initiated_by),
    *(_READABLE(_HISTORY.reason), _HISTORY.started_at, func.coalesce(_HISTORY.duration_ms, 0.0), _HISTORY.delta_rows),
    *(_HISTORY.rows_inserted, _HISTORY.rows_deleted, _HISTORY.sqlstate, _HISTORY.engine),
)
_KINDS: dict[Kind, ColumnElement[bool]] = {
    Kind.ALL: true(),
    Kind.DONE: _HISTORY.status != "SKIPPED",
    Kind.FAILED: _HISTORY.status == "FAILED",
}


def history_page(
    connection: Connection,
    pgt_id: int | None = None,
    *,
    kind: Kind = Kind.ALL,
    before: int | None = None,
    after: int | None = None,
    size: int = PAGE,
) -> Page:
    """Return the newest attempts, of one stream table or of all; with `before` or `after` those next to that number."""
    wanted = and_(_KINDS[kind], true() if pgt_id is None else _HISTORY.pgt_id == pgt_id)
    if after is not None:
        return _newer(connection, wanted, after, size)
    if before is not None:
        wanted = and_(wanted, _HISTORY.refresh_id < before)
    found = _attempts(connection, wanted, _HISTORY.refresh_id.desc(), size + 1)
    shown = found[:size]
    older = shown[-1].refresh_id if len(found) > size else None
    return Page(shown, older, shown[0].refresh_id if before is not None and shown else None)


def slowest(connection: Connection, within: timedelta, size: int) -> tuple[Attempt, ...]:
    """Return the refreshes that took longest of those that began within the last while."""
    lately = and_(_KINDS[Kind.DONE], _HISTORY.started_at > func.now() - within)
    return _attempts(connection, lately, _HISTORY.duration_ms.desc().nulls_last(), size)


def _newer(connection: Connection, wanted: ColumnElement[bool], after: int, size: int) -> Page:
    found = _attempts(connection, and_(wanted, _HISTORY.refresh_id > after), _HISTORY.refresh_id.asc(), size + 1)
    shown = found[:size][::-1]
    return Page(shown, shown[-1].refresh_id if shown else None, shown[0].refresh_id if len(found) > size else None)


def _attempts(
    connection: Connection, wanted: ColumnElement[bool], order: ColumnElement[object], size: int
) -> tuple[Attempt, ...]:
    statement = select(*_COLUMNS).where(wanted).order_by(order).limit(size)
    with translate_errors():
        rows: list[tuple[Any, ...]] = [tuple(row) for row in connection.execute(statement)]
    return tuple(Attempt(*row) for row in rows)
