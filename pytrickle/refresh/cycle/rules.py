"""Cycles of stream tables: whether one may be refreshed at all, and whether from what it shows or from nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from pytrickle.catalog import stream_table as catalog
from pytrickle.catalog.definition import ChangeRange
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.database import Snapshot, filled, translate_errors
from pytrickle.errors import QueryRefused
from pytrickle.plan.algebra.relation import Version
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.cycle.monotone import endless, obstacle
from pytrickle.plan.limits import WITHIN
from pytrickle.plan.placement import Way, delta_way
from pytrickle.plan.planning import plan_differential, plan_initial
from pytrickle.plan.postgres.buffer import condition
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.refresh_plan import RefreshPlan
from pytrickle.plan.task import Task
from pytrickle.refresh.planner import Planner
from pytrickle.refresh.standing import needs_refresh

MONOTONE_HINT = (
    "A query may only gain rows when what it reads of its cycle gains rows: joins, filters, UNION, DISTINCT, EXISTS."
)
LOST = "SELECT EXISTS (SELECT FROM {buffer} WHERE {delta} AND {weight} < 0)"
ENDLESS_HINT = "Write UNION instead of UNION ALL, or SELECT DISTINCT, in one of them."


@dataclass(frozen=True, slots=True)
class Member:
    """A stream table of a cycle, and how far each of its sources is read."""

    table: StreamTable
    shape: Analysis
    ranges: dict[int, ChangeRange]

    def changed(self, members: frozenset[int]) -> frozenset[int]:
        """Return the sources outside of the cycle that changed."""
        return frozenset(w.relid for w in self.ranges.values() if w.delta_rows and w.relid not in members)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the next refresh of a cycle would do: nothing where it is `quiet`, start `anew`, be `refused` for a reason.

    `way` says in words how the stream table reads itself, `limit` how many rounds there may be.
    """

    way: str
    limit: int
    quiet: bool
    anew: str | None
    refused: str | None


def outlook(planner: Planner, snapshot: Snapshot, pgt_id: int) -> Outlook | None:
    """Look ahead for a stream table that is in a cycle."""
    snapshot_connection = snapshot.connection
    with translate_errors():
        tables = _tables(snapshot_connection, pgt_id)
        row = (
            snapshot_connection.execute("SELECT pgtrickle_private.cycle_path(%s)", (pgt_id,)).fetchone()
            if tables
            else None
        )
    if row is None:
        return None
    members = [
        Member(
            table,
            planner.shape(snapshot_connection, table.pgt_id),
            planner.ranges(snapshot, table, table.decision.caps),
        )
        for table in tables
    ]
    refused = None
    try:
        refuse(members)
    except QueryRefused as error:
        refused = str(error)
    quiet = not any(needs_refresh(member.table, member.ranges) for member in members)
    limit = min(table.max_fixpoint_iterations for table in tables)
    return Outlook(row[0], limit, quiet, None if refused else why_anew(snapshot_connection, members), refused)


def plan_member(member: Member, read: Analysis, ranges: dict[int, ChangeRange], anew: str | None) -> RefreshPlan:
    """Plan the refresh of a member over what the cycle came to, always by PostgreSQL within the transaction.

    `read` has its query, over what stands in for the members.
    """
    table = member.table
    task = Task(read, ranges, WITHIN, table.window_end, member.shape)
    if anew is None:
        return plan_differential(task, delta_way(task.delta_rows))
    action = Action.REINITIALIZE if table.populated and table.reinitialize_reason else Action.FULL
    return plan_initial(task, Way(action, anew))


def check_monotone(planner: Planner, connection: psycopg.Connection, pgt_id: int) -> None:
    """Raise QueryRefused if a stream table is in a cycle whose queries have no fixed point that iteration finds."""
    refuse([Member(table, planner.shape(connection, table.pgt_id), {}) for table in _tables(connection, pgt_id)])


def _tables(connection: psycopg.Connection, pgt_id: int) -> list[StreamTable]:
    numbers = connection.execute("SELECT pgtrickle_private.cycle_members(%s)", (pgt_id,)).fetchall()
    return [catalog.stream_table(connection, number) for (number,) in numbers]


def refuse(members: Sequence[Member]) -> None:
    """Raise QueryRefused unless all queries of a cycle are monotone, and duplicates are removed on every way around."""
    relids = frozenset(member.table.relid for member in members)
    for member in members:
        if found := obstacle(member.shape, relids):
            raise QueryRefused(f"{member.table.name} cannot be in a cycle because of {found}.", MONOTONE_HINT)
    names = {member.table.relid: member.table.name for member in members}
    way = endless({member.table.relid: member.shape.query for member in members if member.shape.query})
    if way:
        around = " reads ".join(names[relid] for relid in way)
        raise QueryRefused(f"No query removes duplicates in the cycle {around}.", ENDLESS_HINT)


def why_anew(snapshot_connection: psycopg.Connection, members: Sequence[Member]) -> str | None:
    """Say why the fixed point must be sought from nothing, or None where it grows from what the cycle shows.

    It grows if every query only gains rows: then what is shown, the least fixed point before, lies below the least one
    now. Rows that lost their support may keep each other alive in a cycle, so after any loss all starts over.
    """
    relids = frozenset(member.table.relid for member in members)
    return next(filter(None, (_why_anew(snapshot_connection, member, relids) for member in members)), None)


def _why_anew(snapshot_connection: psycopg.Connection, member: Member, relids: frozenset[int]) -> str | None:
    table = member.table
    if not table.populated:
        return f"{table.name} was not loaded yet"
    if table.reinitialize_reason:
        return f"{table.name}: {table.reinitialize_reason}"
    if table.refresh_mode == "FULL":
        return f"refresh_mode of {table.name} is FULL"
    names = {dependency.relid: dependency.name for dependency in table.dependencies}
    if behind := [names[relid] for relid in relids & member.ranges.keys() if member.ranges[relid].delta_rows]:
        return f"{table.name} was refreshed without {behind[0]}"
    changed = member.changed(relids)
    if lost := [names[relid] for relid in sorted(changed) if _lost_rows(snapshot_connection, member, relid)]:
        return f"rows of {lost[0]} went or were changed"
    if found := obstacle(member.shape, relids | changed):
        return f"{table.name} may lose rows by {found}"
    return None


def _lost_rows(snapshot_connection: psycopg.Connection, member: Member, relid: int) -> bool:
    source = member.shape.definition.source(relid)
    delta = condition(Version.DELTA, member.ranges[relid])
    row = snapshot_connection.execute(filled(LOST, buffer=source.buffer or "", delta=delta, weight=WEIGHT)).fetchone()
    return bool(row and row[0])
