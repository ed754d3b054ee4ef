"""Rows on their way: into typed temporary tables, from there into the aggregate state, and into the stream table."""

from contextlib import nullcontext

import psycopg
from psycopg import sql

from pytrickle.apply.closed_windows import Closing, close_windows, withhold, withhold_frozen, withhold_whole
from pytrickle.apply.few_rows import apply_few, few_rows
from pytrickle.apply.sorted_indexes import create_sorted
from pytrickle.apply.staged_rows import load_rows
from pytrickle.apply.statements import create_input, create_kept, create_like, drop, index_lookups, run
from pytrickle.compute.staged import Staged
from pytrickle.database import filled, trusted
from pytrickle.errors import StreamTableDrifted
from pytrickle.plan.apply_plan import (
    AFTER,
    BEFORE,
    CHANGES,
    CONTENT,
    INCREMENTS,
    INPUT,
    KEYED,
    ApplyPlan,
    Body,
    NewState,
    Stage,
    StatePlan,
    Target,
)

STAGED = "INSERT INTO pg_temp.{table}\n{rows}"
EMPTY = """
SELECT NOT EXISTS (SELECT FROM {table})
    AND NOT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass({name}) AND relhasrules)
"""
# Both tables of a foreign key have triggers for it, and these are found by index.
REFERENCED = """
SELECT EXISTS (
    SELECT FROM pg_trigger AS g JOIN pg_constraint AS k ON k.oid = g.tgconstraint AND k.confrelid = g.tgrelid
    WHERE g.tgrelid = to_regclass(%s) AND k.contype = 'f'
)
"""
# The rows are inserted after the others were deleted, and foreign keys are looked at after both.
IN_ONE_STATEMENT = """
WITH deleted AS ({delete} RETURNING 1), inserted AS (
    {insert} AND (SELECT count(*) FROM deleted) = {expected} RETURNING 1
)
SELECT (SELECT count(*) FROM deleted), (SELECT count(*) FROM inserted)
"""


def apply_rows(connection: psycopg.Connection, plan: ApplyPlan, staged: Staged, closing: Closing) -> tuple[int, int]:
    """Bring the stream table up to date by way of its body, where it has one; return rows inserted and deleted."""
    if few := few_rows(plan, staged):
        with index_lookups(connection):
            return apply_few(connection, plan, few, closing.frozen_before)
    return apply_many(connection, plan, staged, closing)


def apply_many(connection: psycopg.Connection, plan: ApplyPlan, staged: Staged, closing: Closing) -> tuple[int, int]:
    """Bring it up to date by way of temporary tables."""
    _forget_staged(connection)
    if plan.body and plan.stage.whole:
        _create_body(connection, plan.body)
    elif plan.discard:
        # A refresh of the whole does not maintain state and body. Should there be deltas again, both are created anew.
        drop(connection, plan.discard)
    first = plan.may_insert_all and _can_be_filled(connection, plan.target)
    changed = (_insert_all(connection, plan, staged), 0) if first else _change(connection, plan, staged, closing)
    if plan.stage.whole:
        _create_indexes(connection, plan)
    if plan.body and plan.body.stage_shown:
        if first:
            create_like(connection, CHANGES, plan.target.layout)
        else:
            run(connection, f"TRUNCATE pg_temp.{CHANGES}")
        run(connection, plan.body.stage_shown)
        return _apply_changes(connection, plan.shown)
    return (close_windows(connection, plan.windows, closing), 0) if plan.windows else changed


def _insert_all(connection: psycopg.Connection, plan: ApplyPlan, staged: Staged) -> int:
    """Insert all rows into a table that has none: there is nothing to compare them with. Return how many they are."""
    assert plan.replacement is not None
    if plan.replacement.insert_all is None:
        return load_rows(connection, plan.target.table, staged.rows, dict(plan.names))
    _load(connection, plan, staged)
    return run(connection, plan.replacement.insert_all)


def _change(connection: psycopg.Connection, plan: ApplyPlan, staged: Staged, closing: Closing) -> tuple[int, int]:
    create_like(connection, CHANGES, plan.target.layout)
    _stage(connection, plan, staged, closing)
    if plan.withhold_frozen:
        withhold_frozen(connection, plan.withhold_frozen, closing)
    return _apply_changes(connection, plan.target)


def _load(connection: psycopg.Connection, plan: ApplyPlan, staged: Staged) -> None:
    """Load the staged rows into a temporary table, and from there into a new aggregate state."""
    if plan.state:
        _load_increments(connection, plan.stage, plan.state, staged)
    else:
        if plan.stage is Stage.CONTENT:
            create_like(connection, CONTENT, plan.content_layout)
        name = CONTENT if plan.stage is Stage.CONTENT else CHANGES
        load_rows(connection, f"pg_temp.{name}", staged.rows, dict(plan.names))
    if plan.state and plan.state.new:
        _fill_state(connection, plan.state, plan.state.new)


def _stage(connection: psycopg.Connection, plan: ApplyPlan, staged: Staged, closing: Closing) -> None:
    """Load the staged rows, and turn them into changes of the stream table or its body."""
    _load(connection, plan, staged)
    if plan.windows:
        (withhold_whole if plan.stage.whole else withhold)(connection, plan.windows, closing)
    if plan.replacement:
        # Had all rows been to be inserted, they were.
        empty = not plan.may_insert_all and _can_be_filled(connection, plan.target)
        run(connection, plan.replacement.stage_all if empty else plan.replacement.stage_differences)
    elif plan.state:
        _accumulate(connection, plan.state)


def _load_increments(connection: psycopg.Connection, stage: Stage, state: StatePlan, staged: Staged) -> None:
    if state.new:
        drop(connection, state.table)
        create_kept(connection, state.table, state.new.layout)
    _stage_like_state(connection, state, INCREMENTS)
    if stage.grouped_here:
        create_input(connection, INPUT, state.input_layout)
        load_rows(connection, f"pg_temp.{INPUT}", staged.rows, {})
        run(connection, state.fill_increments)
    else:
        load_rows(connection, f"pg_temp.{INCREMENTS}", staged.rows, {})
    if staged.keyed is not None:
        _stage_like_state(connection, state, KEYED)
        load_rows(connection, f"pg_temp.{KEYED}", staged.keyed, {})


def _forget_staged(connection: psycopg.Connection) -> None:
    """Drop the temporary tables of another stream table that was refreshed in the same transaction."""
    names = ", ".join(f"pg_temp.{name}" for name in (CHANGES, CONTENT, INPUT, INCREMENTS, KEYED, BEFORE, AFTER))
    drop(connection, names)


def _create_body(connection: psycopg.Connection, body: Body) -> None:
    """Create the empty hidden table of which the stream table shows a part."""
    drop(connection, body.table)
    create_kept(connection, body.table, body.layout)


def _create_indexes(connection: psycopg.Connection, plan: ApplyPlan) -> None:
    """Index the rows that a whole refresh has written."""
    if plan.body and plan.body.index:
        create_sorted(connection, plan.body.index)
    if plan.target.key_index:
        create_sorted(connection, plan.target.key_index)
    for text in plan.target.indexes:
        run(connection, text)


def _stage_like_state(connection: psycopg.Connection, state: StatePlan, name: str) -> None:
    """Create an empty temporary table with the columns of the state."""
    create_like(connection, name, filled("SELECT * FROM {state}", state=state.table))


def _fill_state(connection: psycopg.Connection, state: StatePlan, new: NewState) -> None:
    """Fill a fresh state from the staged increments."""
    run(connection, new.fill)
    _finish(connection, state, new)
    if new.index:
        run(connection, new.index)


def _accumulate(connection: psycopg.Connection, state: StatePlan) -> None:
    """Merge the staged increments into the state and stage the difference of the touched groups' final rows."""
    create_like(connection, BEFORE, state.touched)
    create_like(connection, AFTER, state.touched)
    with index_lookups(connection):
        run(connection, filled(STAGED, table=BEFORE, rows=state.touched))
        run(connection, state.merge)
        run(connection, state.insert_new)
        _finish(connection, state, state)
        run(connection, filled(STAGED, table=AFTER, rows=state.touched))
    run(connection, state.stage_differences)


def _finish(connection: psycopg.Connection, state: StatePlan, among: StatePlan | NewState) -> None:
    """Take in the values that were computed anew, and drop groups without rows among those that were written."""
    if state.take_recomputed:
        run(connection, state.take_recomputed)
    if negative := _number(connection, among.count_negative):
        raise StreamTableDrifted(
            f"The aggregate state {state.table} has a negative number of rows in {negative} groups."
        )
    if among.delete_empty:
        run(connection, among.delete_empty)


def _can_be_filled(connection: psycopg.Connection, target: Target) -> bool:
    """Whether a table has no rows to compare with, and no rules either, which COPY does not obey."""
    row = connection.execute(filled(EMPTY, table=target.table, name=sql.Literal(target.table))).fetchone()
    return bool(row and row[0])


def _apply_changes(connection: psycopg.Connection, target: Target) -> tuple[int, int]:
    """Apply the staged changes and return (rows inserted, rows deleted).

    Raise StreamTableDrifted when a row to delete is not there: then the stream table is not what the last refresh
    left, and nothing may be built on it.
    """
    expected = _number(connection, target.count_deleted)
    inserted = None
    with index_lookups(connection) if target.found_by_index else nullcontext():
        if expected and _is_referenced(connection, target):
            deleted, inserted = _change_in_one_statement(connection, target, expected)
        else:
            deleted = run(connection, target.delete) if expected else 0
    if deleted != expected:
        raise StreamTableDrifted(
            f"{target.name} lacks {expected - deleted} of the {expected} rows that should be deleted."
        )
    return (run(connection, target.insert) if inserted is None else inserted), deleted


def _is_referenced(connection: psycopg.Connection, target: Target) -> bool:
    """Whether a foreign key of another table names this one, so that no row may be missing after a statement."""
    row = connection.execute(REFERENCED, (target.table,)).fetchone()
    return bool(row and row[0])


def _change_in_one_statement(connection: psycopg.Connection, target: Target, expected: int) -> tuple[int, int]:
    """Delete and insert the staged changes by one statement; return how many rows were deleted, and inserted."""
    text = IN_ONE_STATEMENT.format(delete=target.delete, insert=target.insert, expected=expected)
    row = connection.execute(trusted(text)).fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)


def _number(connection: psycopg.Connection, query: str) -> int:
    row = connection.execute(trusted(query)).fetchone()
    return int(row[0]) if row else 0
