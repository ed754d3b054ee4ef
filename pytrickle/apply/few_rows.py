"""Few changed rows on their way into the stream table: as parameters, so that no temporary table is made.

A temporary table costs half a millisecond, and its rows in the system catalogs outlive it until they are vacuumed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import psycopg
import pyarrow as pa

from pytrickle.compute.staged import Copied, Staged
from pytrickle.database import trusted
from pytrickle.errors import StreamTableDrifted
from pytrickle.plan.apply_plan import ApplyPlan, FewGroups, Stage, Target

# Parameters are read once per use, and groups computed anew are compared with each changed one.
MOST_ROWS, MOST_GROUPS = 1_000, 200
MOST_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class FewRows:
    """Staged rows by the names of their columns, and the groups computed anew beside them."""

    columns: Mapping[str, Sequence[str | None]]
    keyed: Mapping[str, Sequence[str | None]] | None


def few_rows(plan: ApplyPlan, staged: Staged) -> FewRows | None:
    """Return staged changes or increments as parameters; None where they are many, or are not applied as they are."""
    if plan.stage not in {Stage.CHANGES, Stage.INCREMENTS} or plan.windows or (plan.body and not plan.body.shown_few):
        return None
    columns = _columns(staged.rows, MOST_GROUPS if staged.keyed is not None else MOST_ROWS)
    if columns is None or staged.keyed is None:
        return None if columns is None else FewRows(columns, None)
    keyed = _columns(staged.keyed, MOST_GROUPS)
    return None if keyed is None else FewRows(columns, keyed)


def apply_few(
    connection: psycopg.Connection, plan: ApplyPlan, few: FewRows, frozen_before: str | None
) -> tuple[int, int]:
    """Bring the stream table up to date by few rows, looked up by index; return rows inserted and deleted.

    Changes of rows from before `frozen_before` are recorded instead, where the plan says so.
    """
    if not any(few.columns.values()):
        return 0, 0
    if plan.state:
        changes, weights = _merge(connection, plan.state.table, plan.state.few, few)
    else:
        changes = row_array(few.columns, [staged for staged, _ in plan.names])
        weights = f"{{{','.join(map(str, few.columns[plan.weight]))}}}"
    applied = _apply(connection, plan.target, changes, weights, frozen_before)
    if plan.body and plan.body.shown_few:
        row = connection.execute(trusted(plan.body.shown_few)).fetchone()
        return _apply(connection, plan.shown, *(row or (None, None)))
    return applied


def _merge(
    connection: psycopg.Connection, state: str, groups: FewGroups, few: FewRows
) -> tuple[str | None, str | None]:
    """Merge increments into the state; return the changes of the stream table and their weights, None without any."""
    given = {"rows": row_array(few.columns, groups.columns)}
    keyed = {"keyed": row_array(few.keyed, groups.columns)} if few.keyed is not None else {}
    row = connection.execute(trusted(groups.merge), given | keyed).fetchone()
    negative, empty, changes, weights = row or (0, 0, None, None)
    if negative:
        raise StreamTableDrifted(f"The aggregate state {state} has a negative number of rows in {negative} groups.")
    if empty and groups.delete_empty:
        connection.execute(trusted(groups.delete_empty), given)
    return changes, weights


def _apply(
    connection: psycopg.Connection,
    target: Target,
    changes: str | None,
    weights: str | None,
    frozen_before: str | None = None,
) -> tuple[int, int]:
    """Apply changes, of which there are none where their weights are NULL."""
    if weights is None:
        return 0, 0
    row = connection.execute(
        trusted(target.apply_few), {"rows": changes, "weights": weights, "frozen_before": frozen_before}
    ).fetchone()
    expected, deleted, inserted = row or (0, 0, 0)
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
