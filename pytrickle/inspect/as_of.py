"""Reading as of an earlier watermark: the defining query over what the base tables held then, or what was emitted."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from html import escape
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import bindparam, literal, select

from pytrickle.apply.rewritten import check_not_rewritten
from pytrickle.catalog import change_ranges
from pytrickle.catalog import stream_table as catalog
from pytrickle.catalog.definition import ChangeRange, Definition, Source, View
from pytrickle.catalog.server_probe import server_probe
from pytrickle.catalog.session_settings import session_statements
from pytrickle.catalog.stream_table import Dependency, StreamTable
from pytrickle.catalog.tables import stream_tables
from pytrickle.cut import Cut
from pytrickle.database import exported_snapshot, filled, settle, translate_errors, trusted
from pytrickle.database.adapters import register_infinity, register_written
from pytrickle.database.statement import statement
from pytrickle.errors import InvalidArgument, NotRetained
from pytrickle.inspect.missed import what_was_missed
from pytrickle.plan.at_cut import expanded
from pytrickle.plan.placement import PLANNER, SEQUENTIAL
from pytrickle.plan.query.meaning import understood
from pytrickle.plan.query.probe import Probe
from pytrickle.progress import sql_type
from pytrickle.readable import counted, html_table

# A notebook shows this many rows.
SHOWN = 20

_UPSTREAM = "SELECT pgt_id FROM pgtrickle_private.upstream_tables(%s)"
CUTS = (
    "SELECT source::oid::bigint, pgtrickle_private.qualified_name(source), captured,"
    " (progress).watermark, (progress).batch, (oldest).watermark, (oldest).batch, to_jsonb(cut), readable,"
    " pgtrickle_private.progress_text(pgtrickle_private.withdrawn(source, wanted))"
    " FROM (SELECT ROW(%s::timestamptz, %s::bigint)::pgtrickle.progress AS wanted) AS w"
    " CROSS JOIN LATERAL pgtrickle_private.as_of_cuts(%s, wanted)"
)
CLOSED_ROWS = "SELECT {columns} FROM {table} WHERE {window_end} <= CAST({watermark} AS timestamptz)"
CLOSED = statement(
    select(literal(True)).where(
        stream_tables.c.pgt_id == bindparam("pgt_id"), stream_tables.c.effective_watermark >= bindparam("wanted")
    )
)

STARTS_OVER = "The next tick starts over; it can be read as of the watermarks from then on."


@dataclass(frozen=True, slots=True, repr=False)
class AsOf:
    """The rows of a stream table's query as of an earlier watermark, in no particular order.

    `watermarks` names, for each base table, the watermark at which it was read; None for one that never advanced. For a
    stream table that emits closed windows it names that one alone, for what it emitted is read, not its base tables.
    """

    stream_table: str
    watermarks: dict[str, datetime | int | None]
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __repr__(self) -> str:
        return f"AsOf({self.stream_table!r}, {counted(len(self.rows), 'row')} of {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the first rows, and how many there are."""
        title = escape(f"{self.stream_table}: {counted(len(self.rows), 'row')}")
        return f"<p>{title}</p>{html_table(self.columns, self.rows[:SHOWN])}"


def as_of(
    dsn: str, connection: psycopg.Connection, pgt_id: int, watermark: datetime | int, *, written: bool = False
) -> AsOf:
    """Evaluate the defining query of a stream table with every base table read at a watermark, in one snapshot.

    Each base table is read at its newest watermark not after the given one; one that never advanced is read as it was
    at the newest of those advances. Stream tables that it reads are evaluated by their queries, too. For one that emits
    closed windows the answer is what it had emitted by then. `connection` answers the planner's questions. Values of
    types that Python has not are read as `register_written` says if they are only to be `written`. Raises
    NotRetained where the change history does not reach back that far, and InvalidArgument for a query that depends on
    the clock, reads what cannot be captured or another stream table's closed windows, where sources go by another kind
    of watermark than the given one, and where windows are not closed that far.
    """
    kind = sql_type(watermark)
    with exported_snapshot(dsn) as snapshot, translate_errors():
        snapshot_connection = snapshot.connection
        table = catalog.stream_table(snapshot_connection, pgt_id)
        if table.window_end is not None:
            return _emitted(snapshot_connection, table, table.window_end, watermark, written=written)
        numbers = (pgt_id, *_stream_tables_below(snapshot_connection, table))
        with server_probe(connection) as probe:
            definition = _over_base_tables(snapshot_connection, numbers, probe)
        wanted = (None, watermark) if kind == "bigint" else (watermark, None)
        found = [SourceAsOf(*row) for row in snapshot_connection.execute(CUTS, (*wanted, pgt_id))]
        _check_kinds(table.name, watermark, found)
        for each in sorted(found, key=lambda each: (each.captured, each.oldest is None)):
            _check(table.name, watermark, each)
        if missed := what_was_missed(snapshot_connection, (each.relid for each in found)):
            raise NotRetained(f"Nothing is known of {table.name} as of {watermark}: {missed}.", STARTS_OVER)
        cuts = {each.relid: Cut.from_json(each.cut) for each in found if each.cut}
        ranges = change_ranges.ranges(snapshot_connection, _unread(table, definition.sources), cuts)
        with server_probe(connection) as probe:
            query = expanded(definition, _rewound(ranges), probe)
        settle(snapshot_connection, session_statements(table) + PLANNER + SEQUENTIAL)
        columns = tuple(name for name, _ in definition.columns)
        watermarks = {each.source: each.reached for each in found}
        rows = _rows(snapshot_connection, trusted(query), written=written)
        for number in numbers:
            check_not_rewritten(snapshot_connection, number, elsewhere=False)
        return AsOf(table.name, watermarks, columns, rows)


def _rows(
    snapshot_connection: psycopg.Connection, query: sql.SQL | sql.Composed, *, written: bool
) -> tuple[tuple[Any, ...], ...]:
    cursor = snapshot_connection.cursor()
    # Every value must be read as it is, infinite dates included; none may be replaced by the nearest that Python holds.
    register_infinity(cursor)
    if written:
        register_written(cursor)
    return tuple(cursor.execute(query).fetchall())


def _emitted(
    snapshot_connection: psycopg.Connection,
    table: StreamTable,
    window_end: str,
    watermark: datetime | int,
    *,
    written: bool,
) -> AsOf:
    """Return the windows that were closed at a watermark, as they were emitted: nothing changes them afterwards."""
    if isinstance(watermark, int):
        raise InvalidArgument(f"{table.name} closes windows by event time, not by batch numbers.", "Give a moment.")
    if snapshot_connection.execute(CLOSED, {"pgt_id": table.pgt_id, "wanted": watermark}).fetchone() is None:
        closed = f"through {table.effective_watermark}" if table.effective_watermark else "none yet"
        raise InvalidArgument(
            f"{table.name} has not closed its windows through {watermark}, but {closed}.",
            "Ask for an earlier moment, or wait_for() it first.",
        )
    definition = catalog.definition(snapshot_connection, table.pgt_id)
    columns = tuple(name for name, _ in definition.columns)
    query = filled(
        CLOSED_ROWS,
        columns=sql.SQL(", ").join(map(sql.Identifier, columns)),
        table=sql.Identifier(definition.schema, definition.name),
        window_end=sql.Identifier(window_end),
        watermark=sql.Literal(watermark),
    )
    return AsOf(table.name, {table.name: watermark}, columns, _rows(snapshot_connection, query, written=written))


@dataclass(frozen=True, slots=True)
class SourceAsOf:
    """How a base table is read, as ``as_of_cuts()`` says; the oldest watermark is the first that is known.

    `withdrawn` is the watermark at which it would have been read, had that not been taken back.
    """

    relid: int
    source: str
    captured: bool
    watermark: datetime | None
    batch: int | None
    oldest_watermark: datetime | None
    oldest_batch: int | None
    cut: dict[str, Any] | None
    readable: bool | None
    withdrawn: str | None

    @property
    def reached(self) -> datetime | int | None:
        """The watermark that it is read at, of either kind."""
        return self.watermark if self.batch is None else self.batch

    @property
    def oldest(self) -> datetime | int | None:
        """The oldest watermark that is known, of either kind."""
        return self.oldest_watermark if self.oldest_batch is None else self.oldest_batch


def _check_kinds(name: str, wanted: datetime | int, found: Iterable[SourceAsOf]) -> None:
    """Refuse a watermark of another kind than the sources go by."""
    by_batch, by_time = (
        [each.source for each in found if each.oldest is not None and isinstance(each.oldest, int) is counted]
        for counted in (True, False)
    )
    if by_batch and by_time:
        raise InvalidArgument(
            f"{name} reads {by_time[0]}, which goes by event time, and {by_batch[0]}, which goes by batch numbers.",
            "No one watermark says where to read both: ask for a stream table whose sources are all of one kind.",
        )
    if by_batch and not isinstance(wanted, int):
        raise InvalidArgument(f"{by_batch[0]} goes by batch numbers, not by event time.", "Give the number of a batch.")
    if by_time and isinstance(wanted, int):
        raise InvalidArgument(f"{by_time[0]} goes by event time, not by batch numbers.", "Give a moment.")


def _check(name: str, wanted: datetime | int, read: SourceAsOf) -> None:
    if not read.captured:
        raise InvalidArgument(f"{name} reads {read.source}, whose changes cannot be captured.", "Its past is unknown.")
    if read.withdrawn is not None:
        raise NotRetained(
            f"The watermark {read.withdrawn} of {read.source} was taken back, so what it selected is not known.",
            "Ask for an earlier moment, or for one that the source has reached since.",
        )
    if read.oldest is not None and read.reached is None:
        begins = f"The watermark history of {read.source} begins at {read.oldest}, after {wanted}."
        raise NotRetained(begins)
    if read.cut is None:
        raise NotRetained(f"No source of {name} has a watermark yet.", "Call pgtrickle.advance_watermark after a load.")
    if not read.readable:
        raise NotRetained(f"The change history of {read.source} no longer reaches back to {wanted}.")


def _over_base_tables(snapshot_connection: psycopg.Connection, numbers: Iterable[int], probe: Probe) -> Definition:
    """Return the definition of the first stream table with the others, which it reads, in the place of views."""
    own, *below = (understood(catalog.definition(snapshot_connection, number), probe) for number in numbers)
    for each in (own, *below):
        if each.needs_path:
            raise InvalidArgument(f"The query of {each.qualified_name} uses {each.needs_path}.", "Its past is unknown.")
    views = dict.fromkeys(view for each in (own, *below) for view in each.views)
    upstream = [View(each.schema, each.name, each.text, stored=True) for each in below]
    sources = _merged(source for each in (own, *below) for source in each.sources if source.kind != "STREAM_TABLE")
    aggregates = frozenset().union(*(each.aggregates for each in (own, *below)))
    return replace(own, views=(*views, *upstream), sources=sources, aggregates=aggregates)


def _stream_tables_below(snapshot_connection: psycopg.Connection, table: StreamTable) -> list[int]:
    """Return the numbers of the stream tables that one reads, directly and through others.

    Raise InvalidArgument where their texts cannot take their place: they read each other, or mean something else.
    """
    below = [
        catalog.stream_table(snapshot_connection, number)
        for (number,) in snapshot_connection.execute(_UPSTREAM, (table.pgt_id,)).fetchall()
    ]
    _refuse_circle(below)
    for each in below:
        if each.time_dependent:
            raise InvalidArgument(f"The query of {each.name} depends on the clock.", "It has no answer as of the past.")
        if each.session_settings != table.session_settings:
            hint = "Create them anew in the same session."
            raise InvalidArgument(f"{each.name} was created under other session settings than {table.name}.", hint)
        if each.window_end is not None:
            hint = f"Read {each.name} as of that moment: what its windows lack that came late is not in its query."
            raise InvalidArgument(f"{table.name} reads the closed windows of {each.name}.", hint)
    return [each.pgt_id for each in below if each.pgt_id != table.pgt_id]


def _refuse_circle(tables: Iterable[StreamTable]) -> None:
    try:
        TopologicalSorter({table.relid: {d.relid for d in table.dependencies} for table in tables}).prepare()
    except CycleError as error:
        hint = "What they showed in the past is not kept."
        raise InvalidArgument("Stream tables that read each other in a circle have no past to read.", hint) from error


def _merged(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Return each source once, with the columns that any of the queries uses."""
    merged: dict[int, Source] = {}
    for source in sources:
        known = merged.get(source.relid, source)
        merged[source.relid] = replace(source, used=tuple(dict.fromkeys((*known.used, *source.used))))
    return tuple(merged.values())


def _unread(table: StreamTable, sources: Iterable[Source]) -> StreamTable:
    read = (Dependency(s.relid, f"{s.schema}.{s.name}", s.kind, None, s.buffer) for s in sources)
    return replace(table, dependencies=tuple(read))


def _rewound(ranges: dict[int, ChangeRange]) -> dict[int, ChangeRange]:
    return {relid: change_range for relid, change_range in ranges.items() if change_range.future_rows}
