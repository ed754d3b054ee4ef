"""What a stream table shows of a query that leaves something open, as one query: ties in the order of the whole rows.

PostgreSQL may answer such a query otherwise each time: which of two rows with the same date gets the lower number, or
is among the first ten. A stream table settles that once for all, so that it can be kept up to date: it shows one of the
answers that PostgreSQL may give.
"""

from collections.abc import Mapping

from pytrickle.catalog.definition import ChangeRange
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.limits import Limits, Means
from pytrickle.plan.postgres.aggregate import Merge
from pytrickle.plan.postgres.aggregate_state import Grouped
from pytrickle.plan.postgres.consolidate import expand
from pytrickle.plan.postgres.scales import first_scales
from pytrickle.plan.query.first_rows import shown_rows
from pytrickle.plan.sql.dialect import quote
from pytrickle.plan.task import Task
from pytrickle.plan.whole_rows import whole_rows

ROWS = "SELECT {items} FROM (\n{rows}\n) AS q"
# Of groups without rows only the one of everything is shown.
STATE = "SELECT {items} FROM (\n{increments}\n) AS i{values}{filled}"
VALUES = " LEFT JOIN (\n{values}\n) AS v ON {match}"
FILLED = " WHERE i.pgt_rows > 0"


def leaves_order_open(shape: Analysis) -> bool:
    """Whether what a query shows may depend on the order in which PostgreSQL reads rows, or on rows that tie."""
    aggregate = shape.query.aggregate if shape.query else None
    return not shape.any_order or (aggregate is not None and any(call.ordered for call in aggregate.calls))


def settled_query(shape: Analysis, ranges: Mapping[int, ChangeRange]) -> str | None:
    """Write a query for all that a stream table shows at the new frontier; None where it has no delta rules."""
    query = shape.query
    if query is None or not shape.body.columns:
        return None
    whole = whole_rows(Task(shape, dict(ranges), Limits(0, 0, Means.POSTGRES)))
    names = [quote(name) for name, _ in shape.body.columns]
    if shape.grouped is None:
        items = ", ".join(f"q.{row} AS {name}" for row, name in zip(query.row_columns, names, strict=True))
        text = ROWS.format(items=items, rows=expand(whole.rows, query.row_columns, False, whole.plain))
    else:
        text = shape.grouped.final(f"(\n{_state(shape.grouped, whole.rows, whole.plain)}\n) AS s")
    if query.top:
        shown = tuple(quote(name) for name, _ in shape.definition.columns)
        text = shown_rows(query.top, f"(\n{text}\n) AS b", shown)
    return whole.compiler.within(text)


def _state(grouped: Grouped, rows: str, plain: bool) -> str:
    """Write the state of all groups, as a whole refresh fills it."""
    merged = {column.name for column in grouped.merged}
    items = [f"i.{key}" for key in grouped.keys]
    for column in grouped.state:
        own = f"{'i' if column.name in merged else 'v'}.{column.name}"
        items.append(f"{first_scales(own)} AS {column.name}" if column.merge is Merge.SCALES else own)
    recomputed = len(grouped.merged) < len(grouped.state)
    values = VALUES.format(values=grouped.recomputed(rows), match=grouped.match("i", "v")) if recomputed else ""
    increments = grouped.increments(rows, plain)
    filled = FILLED if grouped.aggregate.grouped else ""
    return STATE.format(items=", ".join(items), increments=increments, values=values, filled=filled)
