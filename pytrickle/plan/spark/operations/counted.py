"""DISTINCT, semijoins, and set operations: how often a row is shown follows from how often its input has it."""

from collections.abc import Mapping

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.constructs.set_operation import SetOperation
from pytrickle.plan.algebra.relation import Derived
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.spark.operations.input import (
    AS_BIGINT,
    OF_RESULT,
    SIDE,
    InputCarriers,
    LeftToPostgres,
    key_items,
    take_keys,
)
from pytrickle.plan.spark.operations.results import Results

TEXT = """\
SELECT {items}, {weight} FROM (
SELECT {side}, {columns}, {times} AS pgt_times FROM (
{{rows}}
) AS d GROUP BY {side}, {columns} HAVING {times} > 0
) AS d{kept} GROUP BY {columns} HAVING sum({side} * pgt_times) <> 0"""
TOTAL = f"sum({SIDE} * pgt_times) AS {WEIGHT}"
ANY = f"CASE WHEN sum({WEIGHT}) > 0 THEN 1 ELSE 0 END"
LEFT, RIGHT = (f"coalesce(sum({WEIGHT}) FILTER (WHERE side_0 = {side}), 0)" for side in (0, 1))
# How often a row is shown, by the operator and whether it is DISTINCT.
TIMES = {
    ("union", True): ANY,
    ("intersect", True): f"CASE WHEN {LEFT} > 0 AND {RIGHT} > 0 THEN 1 ELSE 0 END",
    ("except", True): f"CASE WHEN {LEFT} > 0 AND {RIGHT} = 0 THEN 1 ELSE 0 END",
    ("intersect", False): f"least({LEFT}, {RIGHT})",
    ("except", False): f"{LEFT} - {RIGHT}",
}


def counted(
    derived: Derived, asked: Mapping[str, str], where: str, definition: Definition
) -> tuple[InputCarriers, str]:
    """Return what its input carries and its text; raise LeftToPostgres if Spark cannot compute it exactly."""
    construct, rows = derived.operation.construct, InputCarriers()
    take_keys(derived, definition, rows)
    items = key_items(derived, asked, rows)
    if len(items) < len(asked):
        raise LeftToPostgres(OF_RESULT)
    kept = f" WHERE {Results(derived, definition, rows).condition(where)}" if where else ""
    columns = ", ".join(rows.columns)
    times = TIMES[construct.operator, construct.distinct] if isinstance(construct, SetOperation) else ANY
    if "side_0" in times:
        rows.column("side", AS_BIGINT)
    shown = ", ".join(f"{column} AS {name}" for name, column in items.items())
    return rows, TEXT.format(
        items=shown or "1 AS one", weight=TOTAL, side=SIDE, columns=columns, times=times, kept=kept
    )
