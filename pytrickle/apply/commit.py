"""The write transaction of a refresh: lock, compare frontiers, merge, store frontiers and history, commit."""

from dataclasses import dataclass

import psycopg
from psycopg import sql

from pytrickle.apply.aggregate_state import (
    AFTER,
    BEFORE,
    accumulate,
    create_state,
    fill_state,
    stage_like_state,
    state_table,
)
from pytrickle.apply.closed_windows import (
    EventWindows,
    close_windows,
    create_open,
    index_ends,
    withhold,
    withhold_whole,
)
from pytrickle.apply.ledger import Commitment, claim, closed_through, record, store_frontiers
from pytrickle.apply.limit import body_table, create_body, show_top
from pytrickle.apply.rows import Storage, apply_changes, create_changes, difference, index_rows, stage_changes
from pytrickle.apply.staged_rows import CHANGES, CONTENT, INCREMENTS, INPUT, KEYED, create_like, load_rows, run
from pytrickle.compute.staged import Staged
from pytrickle.plan.postgres.aggregate_state import Grouped
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.refresh_plan import RefreshPlan, Stage, input_layout


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
        for statement in (*what.settings, "SET LOCAL jit = off"):
            run(connection, statement)
        closed, earlier_query = closed_through(connection, what)
        xid, through = claim(connection, what)
        windows = (
            EventWindows(what.pgt_id, what.window_end, closed, through, earlier_query) if what.window_end else None
        )
        inserted, deleted = _merge(connection, plan, staged, what.pgt_id, windows)
        store_frontiers(connection, plan, what)
        record(connection, plan, what, (inserted, deleted))
    return Committed(inserted, deleted, xid)


def _merge(
    connection: psycopg.Connection, plan: RefreshPlan, staged: Staged, pgt_id: int, windows: EventWindows | None
) -> tuple[int, int]:
    """Bring the stream table up to date by way of its body, where it has one; return rows inserted and deleted."""
    storage = Storage.of(plan.shape, body_table(pgt_id) if plan.top or windows else None)
    whole = plan.stage in {Stage.CONTENT, Stage.STATE}
    if plan.top and whole:
        create_body(connection, plan.shape, storage)
    elif windows and whole:
        create_open(connection, plan.shape, storage, windows)
    elif plan.shape.query is None:
        # They would not follow what is computed as a whole; should there be deltas again, they are made anew.
        run(connection, f"DROP TABLE IF EXISTS {state_table(pgt_id)}, {body_table(pgt_id)}")
    create_changes(connection, storage)
    _stage(connection, plan, staged, (pgt_id, storage, windows))
    changed = apply_changes(connection, storage)
    if whole:
        index_rows(connection, storage, pgt_id, plan.shape.key)
    if plan.top:
        return show_top(connection, plan.shape, plan.top, storage)
    return (close_windows(connection, plan, storage, windows), 0) if windows else changed


def forget_staged(connection: psycopg.Connection) -> None:
    """Drop the temporary tables of one commit, where another one follows in the same transaction."""
    names = ", ".join(f"pg_temp.{name}" for name in (CHANGES, CONTENT, INPUT, INCREMENTS, KEYED, BEFORE, AFTER))
    run(connection, f"DROP TABLE IF EXISTS {names}")


Target = tuple[int, Storage, EventWindows | None]


def _stage(connection: psycopg.Connection, plan: RefreshPlan, staged: Staged, target: Target) -> None:
    grouped, windows = plan.shape.grouped, target[2]
    match plan.stage:
        case Stage.CHANGES:
            load_rows(connection, CHANGES, staged.rows, _column_names(plan))
            if windows:
                withhold(connection, plan.shape, CHANGES, windows)
        case Stage.CONTENT:
            _stage_content(connection, plan, staged, target)
        case _ if grouped is not None:
            _stage_grouped(connection, plan, grouped, staged, target)
        case _:
            raise TypeError(f"a plan without an aggregate stages no {plan.stage}")


def _stage_content(connection: psycopg.Connection, plan: RefreshPlan, staged: Staged, target: Target) -> None:
    _, storage, windows = target
    weighted = plan.read is not None and plan.read.weighted
    layout = storage.weighted("CAST(NULL AS bigint)") if weighted else storage.column_list()
    create_like(connection, CONTENT, f"SELECT {layout} FROM {storage.table}")
    load_rows(connection, CONTENT, staged.rows, _column_names(plan))
    repeated = f", generate_series(1, {WEIGHT}) AS e (pgt_n)" if weighted else ""
    after = f"SELECT {storage.column_list()} FROM pg_temp.{CONTENT}{repeated}"
    if windows:
        withhold_whole(connection, plan, after, windows)
    _stage_replacement(connection, storage, after)


def _column_names(plan: RefreshPlan) -> dict[str, str]:
    return {f"r{i}": name for i, (name, _) in enumerate(plan.shape.definition.columns)}


def _stage_replacement(connection: psycopg.Connection, storage: Storage, after: str) -> None:
    """Stage what turns the stored rows into `after`; an empty table needs no comparison."""
    row = connection.execute(_exists(storage)).fetchone()
    if row and row[0]:
        stage_changes(connection, storage, difference(storage, after, f"SELECT * FROM {storage.table}"))
    else:
        stage_changes(connection, storage, f"SELECT {storage.weighted('1', 'q')} FROM ({after}) AS q")


def _exists(storage: Storage) -> sql.SQL:
    return sql.SQL(f"SELECT EXISTS (SELECT FROM {storage.table})")


def _stage_grouped(
    connection: psycopg.Connection, plan: RefreshPlan, grouped: Grouped, staged: Staged, target: Target
) -> None:
    pgt_id, storage, windows = target
    if plan.stage is Stage.STATE:
        create_state(connection, pgt_id, grouped, input_layout(plan.shape))
    stage_like_state(connection, pgt_id, INCREMENTS)
    if plan.stage is Stage.INPUT:
        _increments_from_input(connection, plan, grouped, staged)
    else:
        load_rows(connection, INCREMENTS, staged.rows, {})
    keyed = staged.keyed is not None
    if staged.keyed is not None:
        stage_like_state(connection, pgt_id, KEYED)
        load_rows(connection, KEYED, staged.keyed, {})
    if plan.stage is Stage.STATE:
        after = fill_state(connection, pgt_id, grouped, keyed)
        if windows:
            index_ends(connection, plan.shape, windows)
            withhold_whole(connection, plan, after, windows)
        _stage_replacement(connection, storage, after)
        return
    if windows:
        for name in (INCREMENTS, KEYED)[: 1 + keyed]:
            withhold(connection, plan.shape, name, windows, keyed)
    accumulate(connection, pgt_id, grouped, storage, keyed)


def _increments_from_input(connection: psycopg.Connection, plan: RefreshPlan, grouped: Grouped, staged: Staged) -> None:
    create_like(connection, INPUT, input_layout(plan.shape))
    load_rows(connection, INPUT, staged.rows, {})
    columns = ", ".join([*grouped.keys, *(column.name for column in grouped.merged)])
    increments = grouped.increments(f"SELECT * FROM pg_temp.{INPUT}")
    run(connection, f"INSERT INTO pg_temp.{INCREMENTS} ({columns})\n{increments}")
