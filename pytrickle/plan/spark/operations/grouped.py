"""GROUP BY below other parts of a query: counts, and sums and extremes of integers."""

import re
from collections.abc import Mapping

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.constructs.group import Group
from pytrickle.plan.algebra.relation import Derived
from pytrickle.plan.postgres.aggregate import INTEGERS
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.spark.key_encoding import null_safe
from pytrickle.plan.spark.operations.input import (
    AS_BIGINT,
    AS_TEXT,
    SIDE,
    InputCarriers,
    key_items,
    searched,
    take_keys,
)
from pytrickle.plan.spark.operations.input import plain as normalized

CALL = re.compile(r'(count|sum|min|max)\((?:"?d"?\."?(\w+)"?|\*)\)', re.IGNORECASE)
IS_SET = "CAST(CASE WHEN {0} IS NULL THEN NULL ELSE 1 END AS bigint)"
TEXT = """\
SELECT {items}, sum({side}) AS {weight} FROM (
SELECT {side}, {keys}{values} FROM (
SELECT {side}, {columns}, sum({weight}) AS {weight} FROM (
{{rows}}
) AS d GROUP BY {side}, {columns} HAVING sum({weight}) <> 0
) AS d GROUP BY {side}, {keys}
) AS d GROUP BY {shown} HAVING sum({side}) <> 0"""
SHOWN = {
    AS_BIGINT: "{}",
    AS_TEXT: "CAST({} AS STRING)",
    normalized(null_safe(AS_BIGINT)): "coalesce('=' || CAST({} AS STRING), '')",
}


def grouped(derived: Derived, asked: Mapping[str, str], definition: Definition) -> tuple[InputCarriers, str] | None:
    """Return what its input carries and its text; None if Spark cannot compute it exactly."""
    operation, rows = derived.operation, InputCarriers()
    if not operation.keys or not operation.exact or not take_keys(derived, definition, rows):
        return None
    items, values = key_items(derived, asked, rows), _values(derived, rows)
    if items is None or values is None:
        return None
    for name, template, column in searched(derived, asked):
        if column in values and template in SHOWN:
            items[name] = SHOWN[template].format(column)
    if len(items) < len(asked):
        return None
    keys = ", ".join(column for column in rows.columns if column.rsplit("_", 1)[0] in operation.keys)
    return rows, TEXT.format(
        items=", ".join(f"{sql} AS {name}" for name, sql in items.items()) or "1 AS one",
        side=SIDE,
        weight=WEIGHT,
        keys=keys,
        values="".join(f", {sql} AS {name}" for name, sql in values.items()),
        columns=", ".join(rows.columns),
        shown=", ".join([keys, *values]),
    )


def _values(derived: Derived, rows: InputCarriers) -> dict[str, str] | None:
    """Write the calls over consolidated rows, all of which are integers in PostgreSQL too; None if one is not."""
    construct, types = (
        derived.operation.construct,
        dict(zip(derived.operation.columns, derived.operation.types, strict=False)),
    )
    assert isinstance(construct, Group)
    found: dict[str, str] = {}
    for i, call in enumerate(construct.calls):
        matched = CALL.fullmatch(call)
        if matched is None or types.get(f"c{i}") not in INTEGERS:
            return None
        found[f"c{i}"] = _value(matched[1].lower(), matched[2], rows)
    return found


def _value(function: str, argument: str | None, rows: InputCarriers) -> str:
    if argument is None:
        return f"sum({WEIGHT})"
    column = rows.column(argument, IS_SET if function == "count" else AS_BIGINT)
    if function == "count":
        return f"coalesce(sum({column} * {WEIGHT}), 0)"
    return f"sum({column} * {WEIGHT})" if function == "sum" else f"{function}({column})"
