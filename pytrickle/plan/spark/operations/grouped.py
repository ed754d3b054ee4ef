"""GROUP BY below other parts of a query: counts, and sums, averages and extremes of integers and numerics."""

from collections.abc import Mapping

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.constructs.group import SIMPLE, Group
from pytrickle.plan.algebra.relation import Derived
from pytrickle.plan.postgres.aggregate import INTEGERS
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.spark.bounds import NUMERIC
from pytrickle.plan.spark.on_grid import OntoGrid
from pytrickle.plan.spark.operations.input import (
    AS_BIGINT,
    IS_SET,
    OF_RESULT,
    SIDE,
    InputCarriers,
    LeftToPostgres,
    key_items,
    searched,
    take_keys,
)
from pytrickle.plan.spark.operations.reading import reader_of
from pytrickle.plan.spark.operations.results import Results
from pytrickle.plan.spark.operations.values import ROWS, SHOWN, Values, beside, listed

OF_CALL = "calls an aggregate without a rule for Spark"
GROUPED = "SELECT {side}, {keys}{values} FROM (\n{rows}\n) AS d GROUP BY {side}, {keys}"
CHANGED = """\
SELECT {items}, sum({counted}) AS {weight} FROM (
{rows}
) AS d GROUP BY {shown} HAVING sum({counted}) <> 0"""
# Spark would move a WHERE, or what is asked of a grouped column, below all that is computed before, and write that out
# in each place where it is used: planning would take minutes. It moves nothing below an aggregate.
COUNTED = f"CASE WHEN {{condition}} THEN {SIDE} ELSE 0 END"
OF_GROUP = "max({value})"


def grouped(
    derived: Derived, asked: Mapping[str, str], where: str, definition: Definition, grids: Mapping[str, OntoGrid]
) -> tuple[InputCarriers, str]:
    """Return what its input carries and its text; raise LeftToPostgres if Spark cannot compute it exactly.

    None of the rows that are put into the text may take back another one. A group changes where what is told of it
    differs between both sides, or whether it is shown. `grids` are those that some of the asked
    columns are put onto, by their names.
    """
    operation, rows = derived.operation, InputCarriers()
    take_keys(derived, definition, rows)
    types = dict(zip(operation.columns, operation.types, strict=False))
    items, values = key_items(derived, asked, rows), _values(derived, types, rows, definition)
    results = Results(derived, definition, rows, frozenset(values.averages), sums=values.sums)
    counted = COUNTED.format(condition=results.condition(where)) if where else SIDE
    told = set[str]()
    for name, template, column in searched(derived, asked):
        if column not in operation.keys and name in grids and (put := results.on_grid(grids[name])):
            items[name] = OF_GROUP.format(value=put)
            told |= types.keys()
        elif column not in operation.keys and template in SHOWN.get(types.get(column or "", ""), {}):
            items[name] = SHOWN[types[column or ""]][template].format(column)
            told.add(column or "")
    if len(items) < len(asked):
        raise LeftToPostgres(OF_RESULT)
    keys = ", ".join(column for column in rows.columns if column.rsplit("_", 1)[0] in operation.keys)
    shown = ", ".join(f"{sql} AS {name}" for name, sql in items.items()) or "1 AS one"
    columns = ", ".join([keys, *(name for name in types if name in told and name not in operation.keys)])
    values.results = {name: sql for name, sql in values.results.items() if name in told | results.texts}
    text = beside(beside(_grouped(values, keys, rows), results.read), results.computed)
    return rows, CHANGED.format(items=shown, counted=counted, weight=WEIGHT, rows=text, shown=columns)


def _grouped(values: Values, keys: str, rows: InputCarriers) -> str:
    """Write the results of groups over a place for the rows of the input."""
    text = beside(ROWS, values.read)
    return values.shown(GROUPED.format(side=SIDE, keys=keys, values=listed(values.taken), rows=text))


def _values(derived: Derived, types: Mapping[str, str], rows: InputCarriers, definition: Definition) -> Values:
    """Write the calls over rows of the input; raise LeftToPostgres if one is not on the list."""
    construct, found = derived.operation.construct, Values()
    assert isinstance(construct, Group)
    for i, call in enumerate(construct.calls):
        name = f"c{i}"
        matched, type_name = SIMPLE.fullmatch(call), types.get(name)
        if matched is None:
            raise LeftToPostgres(OF_CALL)
        function, argument = matched[1].lower(), matched[3]
        if type_name in INTEGERS and function != "avg":
            found.taken[name] = _whole(function, argument, rows)
        elif type_name == NUMERIC and (function in {"sum", "avg"} or derived.operation.exact):
            template, reader = reader_of(derived, argument, definition)
            found.take_numeric(name, function, rows.column(argument, template), reader)
        else:
            raise LeftToPostgres(OF_CALL)
    return found


def _whole(function: str, argument: str | None, rows: InputCarriers) -> str:
    """Write a call whose results are integers in PostgreSQL, too."""
    if argument is None:
        return f"sum({WEIGHT})"
    column = rows.column(argument, IS_SET if function == "count" else AS_BIGINT)
    if function == "count":
        return f"coalesce(sum({column} * {WEIGHT}), 0)"
    return f"sum({column} * {WEIGHT})" if function == "sum" else f"{function}({column})"
