"""The groups within a query that are kept: how they are brought up to date, and how they are filled the first time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psycopg
from sqlalchemy import bindparam, func, update

from pytrickle.apply.few_rows import row_array
from pytrickle.apply.rewritten import refuse_rewritten
from pytrickle.apply.sorted_indexes import create_sorted
from pytrickle.apply.staged_rows import load_rows
from pytrickle.apply.statements import create_lasting, drop, guard, run
from pytrickle.catalog.tables import stream_tables
from pytrickle.compute.staged import Copied
from pytrickle.database import filled, trusted
from pytrickle.database.statement import statement
from pytrickle.errors import StreamTableDrifted
from pytrickle.plan.apply_plan import KeptTable
from pytrickle.plan.refresh_plan import KeptRead, RefreshPlan

# Groups whose increments take more are left behind, and filled anew.
MOST_BYTES = 4 * 1024 * 1024
ROW = stream_tables.c
FILLED = statement(
    update(stream_tables)
    .where(
        ROW.pgt_id == bindparam("pgt_id"),
        ROW.frontier_version == bindparam("frontier_version"),
        ROW.view_stamp.is_not_distinct_from(bindparam("view_stamp")),
        ROW.reinitialize_reason.is_(None),
    )
    .values(kept_groups=bindparam("kept_groups"))
    .returning(func.pgtrickle_private.rewritten_source(ROW.pgt_id, False))
)


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Increments as parameters, for each of some kept groups the text of an array, None where there are none.

    `kept_as` tells for which query the groups are kept.
    """

    kept_as: str
    reads: tuple[KeptRead, ...]
    rows: tuple[str | None, ...]

    def stamp(self, frontier_version: int) -> str:
        """Return what says in the catalog that groups are those of a query at a frontier."""
        return stamp(self.kept_as, frontier_version)


def stamp(kept_as: str, frontier_version: int) -> str:
    """Return what says in the catalog that groups are those of a query at a frontier.

    >>> stamp("d41d8cd9", 7)
    'd41d8cd9 7'
    """
    return f"{kept_as} {frontier_version}"


def given_rows(plan: RefreshPlan, rows: tuple[str | None, ...]) -> KeptRows | None:
    """Return increments that were read as parameters; None where the plan does not keep groups."""
    return KeptRows(plan.kept_as, plan.kept, rows) if plan.kept_as is not None else None


def copied_rows(plan: RefreshPlan, copied: Sequence[Copied]) -> KeptRows | None:
    """Return increments that were copied; None where they are too many, or the plan does not keep groups."""
    found = [_array(each, rows) for each, rows in zip(plan.kept, copied, strict=True)]
    complete = all(array is not None for array in found)
    return given_rows(plan, tuple(array or None for array in found)) if complete else None


def ask_to_take_in(connection: psycopg.Connection, kept: KeptRows | None) -> list[psycopg.Cursor]:
    """Add increments to the groups that are kept; see `check_taken_in`."""
    if kept is None:
        return []
    given = [(each.table.take_in, rows) for each, rows in zip(kept.reads, kept.rows, strict=True) if rows]
    return [connection.execute(trusted(text), {"rows": rows}) for text, rows in given]


def check_taken_in(asked: Iterable[psycopg.Cursor]) -> None:
    """Raise StreamTableDrifted where groups have a negative number of rows."""
    for cursor in asked:
        negative = (cursor.fetchone() or (0,))[0]
        if negative:
            raise StreamTableDrifted(f"{negative} of the groups that are kept have a negative number of rows.")


def fill(connection: psycopg.Connection, table: KeptTable, rows: Copied) -> None:
    """Fill the table of kept groups with all of them."""
    drop(connection, table.name)
    create_lasting(connection, table.name, table.layout)
    load_rows(connection, table.name, rows, {})
    for index in table.indexes:
        create_sorted(connection, index)
    # This is no refresh: where a pooler gives sessions other names, the guard would not let it through.
    guard(connection, table.name)
    run(connection, filled("ANALYZE {table}", table=table.name))


def mark_filled(
    connection: psycopg.Connection, pgt_id: int, frontier_version: int, view_stamp: str | None, kept_as: str
) -> bool:
    """Note in the catalog that groups are kept as of a frontier; return whether it is still that of the stream table.

    Raise RefreshConflict where a source was rewritten while it was read.
    """
    given = {"pgt_id": pgt_id, "frontier_version": frontier_version, "view_stamp": view_stamp}
    row = connection.execute(FILLED, {**given, "kept_groups": stamp(kept_as, frontier_version)}).fetchone()
    if row is None:
        return False
    refuse_rewritten(row[0])
    return True


def _array(read: KeptRead, copied: Copied) -> str | None:
    """Write copied rows as the text of an array; None where they are too many."""
    rows = copied.rows(MOST_BYTES)
    if rows is None:
        return None
    columns = dict(zip(copied.columns, zip(*rows, strict=True), strict=True)) if rows else {}
    return row_array(columns, read.table.columns) if rows else ""
