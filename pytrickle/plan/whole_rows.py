"""All weighted rows below a query's aggregate at the new frontier, as PostgreSQL computes them."""

from dataclasses import dataclass

from pytrickle.catalog.definition import ChangeRange
from pytrickle.plan.algebra.delta import at, unfold_all
from pytrickle.plan.algebra.query import Query
from pytrickle.plan.algebra.relation import Relation, UnionAll, Version, operations
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.applying import input_layout
from pytrickle.plan.postgres.compile import Compiler
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.weight import are_plain
from pytrickle.plan.task import Task

AS_WRITTEN = "SELECT q.*, CAST(1 AS bigint) AS {weight} FROM (\n{query}\n) AS q{names}"
NO_ROWS = "SELECT * FROM (\n{layout}\n) AS q WHERE false"


@dataclass(frozen=True, slots=True)
class WholeRows:
    """All rows below an aggregate, and the compiler with their WITH list; `plain` if each of them has weight one."""

    compiler: Compiler
    rows: str
    plain: bool


def whole_rows(task: Task) -> WholeRows:
    """Compile the weighted rows below the aggregate at the new frontier."""
    query, shape, ranges = task.query, task.shape, task.ranges
    compiler = Compiler(shape.definition, ranges, most_parts=1)
    if not shape.definition.wrapped and (as_written := _as_written(query, ranges)):
        return WholeRows(compiler, as_written, True)
    # What came after the frontier may be much. Multiplied out it is joined again and again, by a planner that knows
    # nothing of it; taken from each table that is read it is joined once.
    parts = unfold_all((at(query.rows, Version.NEW),), ranges, most=1)
    return WholeRows(compiler, rows_of(compiler, parts, shape), are_plain(parts))


def rows_of(compiler: Compiler, parts: tuple[Relation, ...], shape: Analysis) -> str:
    """Compile the weighted rows below the aggregate; none where there are no parts."""
    if not parts:
        # The sources that changed are named only in a WITH entry that nothing reads.
        return NO_ROWS.format(layout=input_layout(shape))
    return compiler.rows(UnionAll(parts))


def _as_written(query: Query, ranges: dict[int, ChangeRange]) -> str | None:
    """Read all rows by the user's own text, which PostgreSQL plans best, unless rows or their order differ from it."""
    found = operations(query.rows)
    settled = found and all(operation.settled for operation in found)
    if (
        query.text is None
        or not settled
        or any(change_range.new and change_range.future_rows for change_range in ranges.values())
    ):
        return None
    names = f"({', '.join(query.row_columns)})" if query.row_columns else ""
    return AS_WRITTEN.format(weight=WEIGHT, query=query.text, names=names)
