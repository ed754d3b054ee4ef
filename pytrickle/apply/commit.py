"""The write transaction of a refresh: lock, compare frontiers, merge, store frontiers and history, commit."""

from dataclasses import dataclass

import psycopg

from pytrickle.apply.closed_windows import Closing, close_windows, withhold, withhold_whole
from pytrickle.apply.ledger import Commitment, advance_frontier, closed_through, record, store_frontiers
from pytrickle.apply.rows import (
    accumulate,
    apply_changes,
    create_body,
    create_like,
    create_state,
    fill_state,
    load_rows,
    run,
    stage_like_state,
    stage_replacement,
)
from pytrickle.compute.staged import Staged
from pytrickle.database import filled, settle
from pytrickle.plan.apply_plan import (
    AFTER,
    BEFORE,
    CHANGES,
    CONTENT,
    INCREMENTS,
    INPUT,
    KEYED,
    ApplyPlan,
    Stage,
    StatePlan,
)
from pytrickle.plan.refresh_plan import RefreshPlan


@dataclass(frozen=True, slots=True)
class Committed:
    """What a committed refresh changed, and the transaction that did it."""

    rows_inserted: int
    rows_deleted: int
    xid: str


def commit(connection: psycopg.Connection, plan: RefreshPlan, staged: Staged, what: Commitment) -> Committed:
    """Apply a computed refresh in one transaction: everything, or nothing.

    Raise RefreshConflict when another refresh moved the frontier meanwhile, StreamTableDrifted when the stored rows
    are not what the last refresh left.
    """
    with connection.transaction():
        # Compiling the statements of a merge takes longer than running them.
        settle(connection, (*what.settings, "SET LOCAL jit = off"))
        closed, earlier_query = closed_through(connection, what)
        xid, through = advance_frontier(connection, plan, what)
        inserted, deleted = _merge(connection, plan.apply, staged, Closing(closed, through, earlier_query))
        store_frontiers(connection, plan, what)
        record(connection, plan, what, (inserted, deleted))
    return Committed(inserted, deleted, xid)


def forget_staged(connection: psycopg.Connection) -> None:
    """Drop the temporary tables of one commit, where another one follows in the same transaction."""
    names = ", ".join(f"pg_temp.{name}" for name in (CHANGES, CONTENT, INPUT, INCREMENTS, KEYED, BEFORE, AFTER))
    run(connection, filled("DROP TABLE IF EXISTS {names}", names=names))


def _merge(connection: psycopg.Connection, plan: ApplyPlan, staged: Staged, closing: Closing) -> tuple[int, int]:
    """Bring the stream table up to date by way of its body, where it has one; return rows inserted and deleted."""
    if plan.body and plan.stage.whole:
        create_body(connection, plan.body)
    elif plan.discard:
        # They would not follow what is computed as a whole; should there be deltas again, they are made anew.
        run(connection, plan.discard)
    create_like(connection, CHANGES, plan.target.layout)
    _stage(connection, plan, staged, closing)
    changed = apply_changes(connection, plan.target)
    for index in plan.target.indexes if plan.stage.whole else ():
        run(connection, index)
    if plan.body and plan.body.stage_shown:
        run(connection, f"TRUNCATE pg_temp.{CHANGES}")
        run(connection, plan.body.stage_shown)
        return apply_changes(connection, plan.shown)
    return (close_windows(connection, plan.windows, closing), 0) if plan.windows else changed


def _stage(connection: psycopg.Connection, plan: ApplyPlan, staged: Staged, closing: Closing) -> None:
    """Load the staged rows, and turn them into changes of the stream table or its body."""
    if plan.state:
        _load_increments(connection, plan.stage, plan.state, staged)
    else:
        if plan.stage is Stage.CONTENT:
            create_like(connection, CONTENT, plan.content_layout)
        load_rows(connection, CONTENT if plan.stage is Stage.CONTENT else CHANGES, staged.rows, dict(plan.names))
    if plan.stage.makes_state and plan.state:
        fill_state(connection, plan.state)
    if plan.windows:
        (withhold_whole if plan.stage.whole else withhold)(connection, plan.windows, closing)
    if plan.replacement:
        stage_replacement(connection, plan.target, plan.replacement)
    elif plan.state:
        accumulate(connection, plan.state)


def _load_increments(connection: psycopg.Connection, stage: Stage, state: StatePlan, staged: Staged) -> None:
    if stage.makes_state:
        create_state(connection, state)
    stage_like_state(connection, state, INCREMENTS)
    if stage.grouped_here:
        create_like(connection, INPUT, state.input_layout)
        load_rows(connection, INPUT, staged.rows, {})
        run(connection, state.fill_increments)
    else:
        load_rows(connection, INCREMENTS, staged.rows, {})
    if staged.keyed is not None:
        stage_like_state(connection, state, KEYED)
        load_rows(connection, KEYED, staged.keyed, {})
