"""How a stream table stands before a refresh: whether one could change anything, and on what its way depends."""

from collections.abc import Mapping
from dataclasses import replace

import psycopg

from pytrickle.apply.kept_groups import stamp
from pytrickle.catalog.definition import ChangeRange
from pytrickle.catalog.session_settings import longest_statement
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.database import translate_errors
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.placement import Standing, Way
from pytrickle.plan.postgres.merge_state import state_table
from pytrickle.plan.postgres.stored_rows import body_table
from pytrickle.plan.refresh_plan import RefreshPlan
from pytrickle.plan.task import Task

# Of the tables that are needed, those that are not there, or have other columns than they are to have.
MISSING = """
SELECT n.name, to_regclass(n.name) IS NOT NULL FROM unnest(%s::text[], %s::text[]) AS n (name, columns)
WHERE to_regclass(n.name) IS NULL OR n.columns <> (
    SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute
    WHERE attrelid = to_regclass(n.name) AND attnum > 0 AND NOT attisdropped
)
"""
# Why everything is computed anew where increments could not be added to what is there.
NOW = "its changes can be computed now"
OTHERWISE = "its groups were laid out by another version"


def is_again(way: Way, standing: Standing) -> bool:
    """Whether everything is computed anew for a stream table that shows rows already, and may change any of them."""
    again = standing.populated and not standing.reinitialize_reason and standing.output_mode == "update"
    return way.action is Action.FULL and again


def kept_tables(table: StreamTable, shape: Analysis) -> list[str]:
    """Name the hidden tables that a refresh maintains beside the stream table; in mode FULL there are none."""
    if table.refresh_mode == "FULL":
        return []
    return _state_tables(shape) + ([each.table for each in shape.kept] if is_kept(table, shape) else [])


def _state_tables(shape: Analysis) -> list[str]:
    """Name those without which no delta can be taken in."""
    pgt_id = shape.definition.pgt_id
    needed = [state_table(pgt_id)] if shape.grouped else []
    return needed + ([body_table(pgt_id)] if shape.query and shape.query.top else [])


def with_state(snapshot_connection: psycopg.Connection, table: StreamTable, shape: Analysis) -> StreamTable:
    """Have a table computed anew that was refreshed as a whole so far, and so lacks what increments are added to.

    Where only kept groups are not there, they are left behind.
    """
    needed = kept_tables(table, shape)
    lasting = table.populated and shape.definition.sources
    if not (needed and lasting) or table.reinitialize_reason or table.refresh_mode == "FULL":
        return table
    columns = {state_table(table.pgt_id): " ".join(shape.grouped.columns)} if shape.grouped else {}
    expected = [columns.get(name) for name in needed]
    missing: dict[str, bool] = dict(snapshot_connection.execute(MISSING, (needed, expected)).fetchall())
    if lacking := missing.keys() & _state_tables(shape):
        reason = OTHERWISE if any(missing[name] for name in lacking) else NOW
        return replace(table, reinitialize_reason=reason)
    return replace(table, kept_groups=None) if missing else table


def is_kept(table: StreamTable, shape: Analysis) -> bool:
    """Whether the groups that a query keeps are those at the frontier of its stream table."""
    return shape.kept_as is not None and table.kept_groups == stamp(shape.kept_as, table.frontier_version)


def are_kept(table: StreamTable) -> bool:
    """Whether groups are kept at the frontier, be it for a query as another process understands it.

    Then their tables are not made anew: to whoever reads in an older snapshot, new tables are empty.
    """
    return table.kept_groups is not None and table.kept_groups.endswith(f" {table.frontier_version}")


def standing_of(table: StreamTable, task: Task, may_give_up: bool) -> Standing:
    """Return what the way of a refresh depends on; `may_give_up` says that another way can be taken after all."""
    return Standing(
        table.populated,
        table.reinitialize_reason,
        table.refresh_mode,
        table.output_mode,
        task.shape.why_whole(task.ranges.values()),
        task.shape.grouped is not None,
        task.delta_rows,
        task.limits.spark,
        any(change_range.changed for change_range in task.ranges.values()),
        may_give_up,
    )


def limited(plan: RefreshPlan, seconds: float, connection: psycopg.Connection, table: StreamTable) -> RefreshPlan:
    """Limit for how long what a plan reads is read, but no longer than each statement may run anyway."""
    with translate_errors():
        allowed = longest_statement(connection, table)
    return replace(plan, most_seconds=min(seconds, allowed.total_seconds()) if allowed else seconds)


def needs_refresh(table: StreamTable, ranges: Mapping[int, ChangeRange]) -> bool:
    """Whether a refresh could change anything: the first load, a void frontier, changes, or what no buffer shows."""
    return not table.follows_its_buffers or any(change_range.delta_rows for change_range in ranges.values())
