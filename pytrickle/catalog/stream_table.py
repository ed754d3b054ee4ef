"""What one refresh reads of the catalog, in the snapshot in which it also reads the data."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import dict_row

from pytrickle.catalog.definition import Definition, Source, SourceColumn, View
from pytrickle.catalog.gating import Decision
from pytrickle.catalog.lost import lost
from pytrickle.catalog.printed import calling
from pytrickle.catalog.rows_to_refresh import ALL, ONE
from pytrickle.config import EngineName
from pytrickle.cut import Cut
from pytrickle.database import has_any_bytes, quoted_path
from pytrickle.errors import CatalogError, UnknownStreamTable
from pytrickle.progress import Progress


@dataclass(frozen=True, slots=True)
class Dependency:
    """One direct source of a stream table and how far it was read; `frontier` is None before the first load.

    `buffer` names its change buffer, None where what is read of it cannot be captured.
    """

    relid: int
    name: str
    kind: str
    frontier: Cut | None
    buffer: str | None


@dataclass(frozen=True, slots=True)
class StreamTable:
    """A stream table's catalog row as a refresh needs it.

    `statement_timeout` is how long a statement of its refresh may run, None for as long as the server lets it.
    `recomputation_asked` says that somebody asked for what `reinitialize_reason` is about.
    `window_end` is the column by which windows are closed, under append. Rows whose `frozen_by` is before
    `frozen_before` never change again; that is a text, since PostgreSQL knows moments that Python does not.
    `timed` says that its schedule is not calculated, `halted` why ticks leave it alone, if they do; `view_stamp` is new
    when its query means something new. `kept_groups` says for which query, and which version of the frontier, groups
    within it are kept.
    """

    pgt_id: int
    relid: int
    exists: bool
    name: str
    refresh_mode: str
    status: str
    session_settings: Mapping[str, str]
    time_dependent: bool
    frontier_version: int
    effective_watermark: datetime | None
    effective_batch: int | None
    reinitialize_reason: str | None
    last_skip_reason: str | None
    last_error: str | None
    timed: bool
    gated_since: datetime | None
    due: bool
    halted: str | None
    diamond_consistency: str
    diamond_schedule_policy: str
    output_mode: str
    window_end: str | None
    earlier_query_through: datetime | None
    frozen_by: str | None
    frozen_before: str | None
    fuse_ceiling: int | None
    fuse_blown_at: datetime | None
    max_fixpoint_iterations: int
    statement_timeout: timedelta | None
    engine: EngineName
    view_stamp: str | None
    planner_defect: str | None
    recomputation_asked: bool
    kept_groups: str | None
    dependencies: tuple[Dependency, ...]
    decision: Decision

    @property
    def effective(self) -> Progress:
        """How far it is complete."""
        return Progress(self.effective_watermark, self.effective_batch)

    @property
    def differential_only(self) -> bool:
        """Whether a query without delta rules is an error."""
        return self.refresh_mode in {"DIFFERENTIAL", "DIFFERENTIAL_STRICT"}

    @property
    def strict(self) -> bool:
        """Whether it is computed anew only when somebody asks for it."""
        return self.refresh_mode == "DIFFERENTIAL_STRICT"

    @property
    def populated(self) -> bool:
        """Whether the first load has been committed."""
        return self.frontier_version > 0

    @property
    def follows_its_buffers(self) -> bool:
        """Whether nothing but buffered changes could make a refresh change anything."""
        captured = all(dependency.buffer for dependency in self.dependencies)
        return self.exists and self.populated and captured and not (self.reinitialize_reason or self.time_dependent)

    @property
    def may_close(self) -> bool:
        """Whether its effective watermark rises, so that windows may be closed without any change."""
        if self.window_end is None or (reached := self.decision.effective_watermark) is None:
            return False
        return self.effective_watermark is None or reached > self.effective_watermark


def stream_tables(
    connection: psycopg.Connection,
    pgt_ids: list[int] | None = None,
    poll_interval: timedelta = timedelta(seconds=1),
    statement_timeout: timedelta | None = None,
) -> tuple[StreamTable, ...]:
    """Read all stream tables, or some, with the gating decision of each; tiers stretch the poll interval.

    Those without a `statement_timeout` of their own have the one given.
    """
    given: dict[str, Any] = {"poll_interval": poll_interval, "statement_timeout": statement_timeout}
    with connection.cursor(row_factory=dict_row) as cursor:
        if pgt_ids is not None and len(pgt_ids) == 1:
            rows = cursor.execute(ONE[has_any_bytes(connection)], {**given, "pgt_id": pgt_ids[0]}, prepare=True)
        else:
            rows = cursor.execute(ALL[has_any_bytes(connection)], {**given, "pgt_ids": pgt_ids})
        return tuple(_stream_table(row) for row in rows)


def stream_table(connection: psycopg.Connection, pgt_id: int) -> StreamTable:
    """Read one stream table; raise UnknownStreamTable if it is gone."""
    found = stream_tables(connection, [pgt_id])
    if not found:
        raise UnknownStreamTable("The stream table was dropped meanwhile.")
    return found[0]


EFFECTIVE = """
SELECT effective_watermark, effective_batch
FROM pgtrickle_private.effective_progress(
    %s, ROW(%s, %s)::pgtrickle.progress, %s::bigint[]::oid[], %s::bigint[]::oid[])
"""


def effective_progress(
    connection: psycopg.Connection, table: StreamTable, standing: list[int], refreshed: list[int]
) -> Progress:
    """Return how far a stream table is complete when others that it reads were left behind; at most as far as decided.

    `standing` are the relids of those that stand where the base tables do, `refreshed` of those as far as what they
    read.
    """
    decided = table.decision.effective
    row = connection.execute(
        EFFECTIVE,
        (table.pgt_id, decided.watermark, decided.batch, standing, refreshed),
    ).fetchone()
    return Progress(*row) if row else Progress()


# To ask pg_settings for the path would have the server write out all its settings.
NAMED = "SELECT pgtrickle_private.stream_table_id(%s, NULL)"


def resolve_name(connection: psycopg.Connection, name: str) -> int:
    """Find the number of a stream table by name, under the search_path of whoever opened the connection."""
    row = connection.execute(NAMED, (name,)).fetchone()
    if row is None:
        raise UnknownStreamTable(f"There is no stream table {name}.")
    return int(row[0])


def definition(connection: psycopg.Connection, pgt_id: int) -> Definition:
    """Read all that the planner needs to know of a stream table."""
    row = connection.execute("SELECT pgtrickle_private.planner_facts(%s)", (pgt_id,)).fetchone()
    if row is None or row[0] is None:
        raise lost(connection, pgt_id)
    found, names = row[0], row[0]["names"]
    if found["text"] is None or None in found["sources"]:
        raise lost(connection, pgt_id)
    if found["altered"]:
        raise CatalogError(
            f"{found['schema']}.{found['name']} no longer has the columns of its defining query.",
            "Undo what was done to its columns, or drop it with pgtrickle.drop_stream_table() and create it anew.",
        )
    if obstacle := names["domain_obstacle"]:
        raise CatalogError(
            f"{found['schema']}.{found['name']} has a column of a domain that {obstacle} checks:"
            " that function names things without their schema.",
            f"ALTER FUNCTION {obstacle} SET search_path = ... with the schemas of what it names.",
        )
    return Definition(
        found["pgt_id"],
        found["schema"],
        found["name"],
        calling(found["text"], names["wrapped"]),
        tuple(View(view["schema"], view["name"], calling(view["text"], names["wrapped"])) for view in found["views"]),
        tuple(_source(source) for source in found["sources"]),
        tuple((name, type_name) for name, type_name in found["columns"]),
        frozenset(found["aggregates"]),
        frozenset(found["set_returning"]),
        found["full_reason"],
        found["bytewise"],
        _path(found),
        bool(names["wrapped"]),
        names["plain"],
        hidden_view=found["view"],
    )


def _path(found: Mapping[str, Any]) -> str:
    path = quoted_path(found["search_path"])
    if path is None:
        raise CatalogError(
            f"The search_path that is stored for {found['schema']}.{found['name']} is no list of schemas.",
            "Give it its query anew with pgtrickle.alter_stream_table(), in a session whose search_path is right.",
        )
    return path


def _stream_table(row: dict[str, Any]) -> StreamTable:
    row["name"] = row["name"] if row["exists"] else row["stored_name"]
    decided = {"effective_watermark": row["decided_watermark"], "effective_batch": row["decided_batch"]}
    decision = Decision.of({**row, **decided})
    row["engine"] = EngineName(row["engine"])
    fields = {name: row[name] for name in StreamTable.__slots__ if name not in {"dependencies", "decision"}}
    dependencies = tuple(
        Dependency(
            d["relid"], d["name"], d["kind"], Cut.from_json(d["frontier"]) if d["frontier"] else None, d["buffer"]
        )
        for d in row["dependencies"]
    )
    return StreamTable(dependencies=dependencies, decision=decision, **fields)


def _source(facts: dict[str, Any]) -> Source:
    return Source(
        facts["relid"],
        facts["schema"],
        facts["name"],
        facts["kind"],
        tuple(SourceColumn(*column) for column in facts["columns"]),
        tuple(facts["used"]),
        facts["buffer"],
        frozenset(facts["indexed"]),
        facts["pages"],
        facts["rows"],
        frozenset(map(frozenset, facts["unique"])),
        frozenset(map(frozenset, facts["keys"])),
    )
