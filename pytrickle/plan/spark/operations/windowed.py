"""Window functions, and the first rows of every key: Spark numbers and sums the rows of the partitions that changed.

Rows are shown as they are, so PostgreSQL evaluates what is asked of them. What comes several times is several rows.
"""

from collections.abc import Mapping

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.constructs.distinct_on import DistinctOn
from pytrickle.plan.algebra.constructs.first_rows import PLACE, FirstRows
from pytrickle.plan.algebra.constructs.window import COPY, Window
from pytrickle.plan.algebra.relation import Derived
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.spark.numbers import Untranslatable
from pytrickle.plan.spark.operations.input import (
    OF_RESULT,
    SIDE,
    InputCarriers,
    LeftToPostgres,
    row_items,
    searched,
    take_keys,
)
from pytrickle.plan.spark.operations.ordering import Ordering
from pytrickle.plan.spark.operations.results import Results
from pytrickle.plan.spark.operations.values import SHOWN, beside, consolidated
from pytrickle.plan.spark.operations.window_functions import OF_FUNCTION, Windows
from pytrickle.plan.sql.dialect import row_order

# Rows that come n times are n rows.
EACH = """\
SELECT {side}, {columns}, CAST(1 AS BIGINT) AS {weight}, {copy} FROM (
{rows}
) AS d LATERAL VIEW posexplode(array_repeat(1, CAST({weight} AS INT))) n AS {copy}, pgt_one"""
CHOSEN = "SELECT d.* FROM (\n{rows}\n) AS d WHERE {condition}"
CHANGED = """\
SELECT {names}, sum(pgt_counted) AS {weight} FROM (
SELECT {items}, {counted} AS pgt_counted FROM (
{rows}
) AS d
) AS d GROUP BY {names} HAVING sum(pgt_counted) <> 0"""


def windowed(
    derived: Derived, asked: Mapping[str, str], where: str, definition: Definition
) -> tuple[InputCarriers, str]:
    """Return what its input carries and its text; raise LeftToPostgres if Spark cannot compute it exactly."""
    rows = InputCarriers()
    take_keys(derived, definition, rows)
    windows = Windows(derived, definition, rows, Ordering(derived, definition, rows))
    try:
        chosen = _taken(windows)
    except Untranslatable:
        raise LeftToPostgres(OF_FUNCTION) from None
    items = row_items(derived, asked, rows) | _asked_of_windows(windows, asked)
    if len(items) < len(asked):
        raise LeftToPostgres(OF_RESULT)
    arguments, values = frozenset(derived.operation.arguments), windows.values
    results = Results(derived, definition, rows, frozenset(values.averages), arguments, frozenset(windows.shifted))
    condition = results.condition(where) if where else ""
    columns = ", ".join(rows.columns)
    text = EACH.format(side=SIDE, columns=columns, weight=WEIGHT, copy=COPY, rows=consolidated(columns))
    text = beside(beside(text, windows.named), values.read | windows.ordering.read)
    text = values.shown(beside(text, values.taken))
    if chosen:
        text = CHOSEN.format(rows=text, condition=chosen)
    text = beside(beside(text, results.read), results.computed)
    return rows, _changed(items, condition, text)


def _changed(items: Mapping[str, str], condition: str, rows: str) -> str:
    return CHANGED.format(
        items=", ".join(f"{sql} AS {name}" for name, sql in items.items()) or "1 AS one",
        names=", ".join(items) or "one",
        counted=f"CASE WHEN {condition} THEN {SIDE} ELSE 0 END" if condition else SIDE,
        weight=WEIGHT,
        rows=rows,
    )


def _taken(windows: Windows) -> str:
    """Take the functions of an operation; return which rows it shows, an empty text for all."""
    construct, arguments = windows.derived.operation.construct, windows.derived.operation.arguments
    match construct:
        case Window(functions=functions):
            for i, function in enumerate(functions):
                windows.take(f"w{i}", function)
            return ""
        case DistinctOn(order=order):
            windows.values.taken[PLACE] = windows.numbered("row_number", (*order, row_order(arguments)))
            return f"{PLACE} = 1"
        case FirstRows():
            for place, function in construct.places.items():
                windows.values.taken[place] = windows.numbered(function, construct.sorted_by(place, arguments))
            return construct.kept
        case _:
            raise TypeError(f"a {type(construct).__name__} has no windows")


def _asked_of_windows(windows: Windows, asked: Mapping[str, str]) -> dict[str, str]:
    """Return what is asked of the functions, as far as Spark can write it."""
    items: dict[str, str] = {}
    for name, template, column in searched(windows.derived, asked):
        shown = SHOWN.get(windows.types.get(column or "", ""), {})
        if column in windows.shifted:
            items[name] = windows.shift(column, template)
        elif column not in windows.derived.operation.arguments and template in shown:
            items[name] = shown[template].format(column)
    return items
