"""Few changed rows on their way into the stream table: as parameters, so that no temporary table is made.

A temporary table costs half a millisecond, and its rows in the system catalogs outlive it until they are vacuumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg

from pytrickle.apply.statements import drop
from pytrickle.compute.staged import Copied, Staged
from pytrickle.database import trusted
from pytrickle.errors import StreamTableDrifted
from pytrickle.plan.apply_plan import ApplyPlan, Stage, StatePlan, Target
from pytrickle.plan.refresh_plan import FEW_CHANGES, FewRead

if TYPE_CHECKING:
    import pyarrow as pa

# Parameters are read once per use, and groups computed anew are compared with each changed one.
MOST_ROWS, MOST_GROUPS = 1_000, 200
MOST_BYTES = 256 * 1024
FEW = frozenset({Stage.CHANGES, Stage.INCREMENTS, Stage.GROUPS})
EMPTY = "{}"
# Rows that no index finds would be compared with each change.
HASHED = "SET LOCAL enable_hashjoin = on"


@dataclass(frozen=True, slots=True)
class FewRows:
    """Changes, or increments of groups, as parameters: the texts of arrays, None where there are none.

    Changes have `weights`. `keyed` are the groups computed anew beside increments, if any are to be, `kept` the
    increments of groups within the query.
    """

    rows: str | None
    weights: str | None
    keyed: str | None
    kept: tuple[str | None, ...] = ()

    @property
    def size(self) -> int:
        """How many characters the rows take."""
        return sum(len(text) for text in (self.rows, self.keyed, *self.kept) if text)


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of a table as the parameters that hold them; those of rows from before `frozen_before` are recorded."""

    rows: str | None
    weights: str | None
    frozen_before: str | None = None


def few_rows(plan: ApplyPlan, staged: Staged) -> FewRows | None:
    """Return staged changes or increments as parameters; None where they are many, or are not applied as they are."""
    if plan.stage not in FEW or plan.windows or (plan.body and not plan.body.shown_few):
        return None
    columns = _columns(staged.rows, MOST_GROUPS if staged.keyed is not None else MOST_ROWS)
    if columns is None:
        return None
    if plan.state is None:
        weights = f"{{{','.join(map(str, columns[plan.weight]))}}}"
        return FewRows(_array(columns, [name for name, _ in plan.names]), weights, None)
    rows = _array(columns, plan.state.few.columns)
    if staged.keyed is None:
        return FewRows(rows, None, None)
    keyed = _columns(staged.keyed, MOST_GROUPS)
    return None if keyed is None else FewRows(rows, None, row_array(keyed, plan.state.few.columns))


def _array(columns: Mapping[str, Sequence[str | None]], names: Sequence[str]) -> str | None:
    return row_array(columns, names) if any(columns.values()) else None


def ask_few(connection: psycopg.Connection, few: FewRead, most_changes: int = FEW_CHANGES) -> list[psycopg.Cursor]:
    """Ask for the few rows that there are to apply, if no more changes than `most_changes` wait; see `answered`."""
    most_rows = MOST_GROUPS if few.keyed else MOST_ROWS
    given = {**few.given, "most_changes": most_changes, "most_rows": most_rows, "most_bytes": MOST_BYTES}
    texts = (text for text in (few.rows, few.keyed, *few.kept) if text)
    return [connection.execute(trusted(text), given, prepare=True) for text in texts]


def answered(few: FewRead, asked: Sequence[psycopg.Cursor]) -> FewRows | None:
    """Return the rows that were asked for, None where they are many."""
    found = [cursor.fetchone() for cursor in asked]
    if not all(row and row[0] for row in found):
        return None
    (_, rows, weights), *others = (row or () for row in found)
    keyed = others[: len(others) - len(few.kept)]
    kept = tuple(row[1] for row in others[len(keyed) :])
    return FewRows(rows, weights, (keyed[0][1] or EMPTY) if keyed else None, kept)


def apply_few(
    connection: psycopg.Connection, plan: ApplyPlan, few: FewRows, frozen_before: str | None
) -> tuple[int, int]:
    """Bring the stream table up to date by few rows, looked up by index; return rows inserted and deleted.

    Changes of rows from before `frozen_before` are recorded instead, where the plan says so.
    """
    return applied(connection, plan, few, ask_to_apply(connection, plan, few, frozen_before), frozen_before)


def ask_to_apply(
    connection: psycopg.Connection, plan: ApplyPlan, few: FewRows, frozen_before: str | None
) -> psycopg.Cursor | None:
    """Send the first statement that applies few rows, if there are any; see `applied`.

    A refresh of the whole that does not maintain state and body drops them: deltas would build on what they were.
    """
    if plan.discard:
        drop(connection, plan.discard)
    if few.rows is None:
        return None
    if plan.state is None:
        return _ask_to_change(connection, plan.target, Changes(few.rows, few.weights, frozen_before))
    given = {"rows": few.rows} if few.keyed is None else {"rows": few.rows, "keyed": few.keyed}
    return connection.execute(trusted(plan.state.few.merge), given)


def applied(
    connection: psycopg.Connection,
    plan: ApplyPlan,
    few: FewRows,
    asked: psycopg.Cursor | None,
    frozen_before: str | None,
) -> tuple[int, int]:
    """Apply them, now that the first statement was sent; return rows inserted and deleted."""
    if asked is None:
        return 0, 0
    if plan.state:
        done = _change(connection, plan.target, Changes(*_merged(connection, plan.state, few, asked), frozen_before))
    else:
        done = _changed(plan.target, asked)
    if plan.body and plan.body.shown_few:
        row = connection.execute(trusted(plan.body.shown_few)).fetchone()
        return _change(connection, plan.shown, Changes(*(row or (None, None))))
    return done


def _merged(
    connection: psycopg.Connection, state: StatePlan, few: FewRows, asked: psycopg.Cursor
) -> tuple[str | None, str | None]:
    """Return the changes of the stream table and their weights, None without any, once increments are merged."""
    negative, empty, rows, weights = asked.fetchone() or (0, 0, None, None)
    if negative:
        raise StreamTableDrifted(
            f"The aggregate state {state.table} has a negative number of rows in {negative} groups."
        )
    if empty and state.few.delete_empty:
        connection.execute(trusted(state.few.delete_empty), {"rows": few.rows})
    return rows, weights


def _change(connection: psycopg.Connection, target: Target, changes: Changes) -> tuple[int, int]:
    """Apply changes, of which there are none where their weights are NULL."""
    return (0, 0) if changes.weights is None else _changed(target, _ask_to_change(connection, target, changes))


def _ask_to_change(connection: psycopg.Connection, target: Target, changes: Changes) -> psycopg.Cursor:
    if not target.found_by_index:
        connection.execute(HASHED)
    given = {"rows": changes.rows, "weights": changes.weights, "frozen_before": changes.frozen_before}
    return connection.execute(trusted(target.apply_few), given)


def _changed(target: Target, asked: psycopg.Cursor) -> tuple[int, int]:
    expected, deleted, inserted = asked.fetchone() or (0, 0, 0)
    if deleted != expected:
        raise StreamTableDrifted(
            f"{target.name} lacks {expected - deleted} of the {expected} rows that should be deleted."
        )
    return inserted, deleted


def _columns(rows: pa.Table | Copied | str, most_rows: int) -> dict[str, Sequence[str | None]] | None:
    if isinstance(rows, str):
        return None
    if isinstance(rows, Copied):
        found = rows.rows(MOST_BYTES)
        if found is None or len(found) > most_rows:
            return None
        values = zip(*found, strict=True) if found else [()] * len(rows.columns)
        return dict(zip(rows.columns, values, strict=True))
    if rows.num_rows > most_rows or rows.nbytes > MOST_BYTES:
        return None
    return {name: rows.column(name).to_pylist() for name in rows.column_names}


def row_array(columns: Mapping[str, Sequence[str | None]], names: Sequence[str]) -> str:
    """Write the text of an array of rows with these columns; those that are not there are NULL.

    >>> print(row_array({"a": ["1", None], "b": ["x y", ""]}, ["a", "c", "b"]))
    {"(\\"1\\",,\\"x y\\")","(,,\\"\\")"}
    """
    rows = zip(*(columns[name] for name in names if name in columns), strict=True)
    places = [name in columns for name in names]
    return f"{{{','.join(quoted(f'({_record(places, row)})') for row in rows)}}}"


def _record(places: Iterable[bool], row: Iterable[str | None]) -> str:
    values = iter(row)
    found = (next(values) if there else None for there in places)
    return ",".join("" if value is None else quoted(str(value)) for value in found)


def quoted(text: str) -> str:
    """Quote a value within the text of an array or a row."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
