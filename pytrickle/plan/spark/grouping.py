"""Grouping in Spark: what the leaves carry for an aggregate's arguments, and the sums that Spark takes over it.

Groups are told apart by the texts of their keys, so one group may come in several parts (1.0 and 1.00); the write
transaction puts the parts together. Spark's decimals have 38 digits: what does not fit raises INEXACT there, and the
refresh is computed by PostgreSQL instead.
"""

from dataclasses import dataclass

from pytrickle.plan.algebra.query import Call
from pytrickle.plan.algebra.relation import Expr
from pytrickle.plan.postgres.aggregate import INTEGERS, SCALED, Merge, is_numeric
from pytrickle.plan.postgres.aggregate_state import Grouped
from pytrickle.plan.postgres.consolidate import WEIGHT

INEXACT = "pytrickle: a value or a sum is too wide for the decimals of Spark"
# A product of both has 38 digits, and so has a sum of such products.
VALUE, WEIGHT_TYPE = "numeric(28,12)", "DECIMAL(9,0)"
LARGEST = "1e16"

_RAISE = f"raise_error('{INEXACT}')"


@dataclass(frozen=True, slots=True)
class SparkGrouping:
    """What Spark groups by, and its aggregates by name; `consolidated` says that rows must cancel out first."""

    by: tuple[str, ...]
    aggregates: tuple[tuple[str, str], ...]
    consolidated: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the result."""
        return (*self.by, *(name for name, _ in self.aggregates))


def spark_grouping(grouped: Grouped) -> SparkGrouping | None:
    """Return how Spark computes parts of the increments; None if it cannot compute one of them exactly."""
    types = dict(grouped.types)
    calls = [call for call in grouped.aggregate.calls if call.written is None and call.argument is not None]
    if any(call.function in {"min", "max"} and types[call.argument or ""] not in INTEGERS for call in calls):
        return None
    found = {"pgt_rows": f"sum({WEIGHT})"}
    for call in calls:
        found |= _aggregates(call, types[call.argument or ""])
    direct = [column.name for column in grouped.merged if column.merge is not Merge.SCALES]
    scales = tuple(column.name.removesuffix("s") for column in grouped.merged if column.merge is Merge.SCALES)
    if not set(direct) <= set(found):
        return None
    return SparkGrouping((*grouped.keys, *scales), tuple((name, found[name]) for name in direct), bool(grouped.extrema))


def carried_columns(grouped: Grouped, name: str, expr: Expr) -> tuple[tuple[str, str], ...]:
    """List what a leaf carries for a column below the aggregate: a key's text, or what sums need of an argument."""
    sql = expr.sql
    type_name = dict(grouped.types)[name]
    if name in grouped.keys:
        return ((name, f"CAST({sql} AS text)"),)
    if type_name in INTEGERS:
        return ((name, f"CAST({sql} AS bigint)"),)
    if is_numeric(type_name):
        scale = ((f"{name}_scale", f"scale({sql})"),) if type_name == "numeric" else ()
        fits = "true" if _always_fits(type_name) else _fits(sql)
        return ((f"{name}_kind", _kind(sql, fits)), (f"{name}_value", _value(sql, fits)), *scale)
    return ((f"{name}_kind", f"CAST(CASE WHEN ({sql}) IS NOT NULL THEN 1 ELSE 0 END AS smallint)"),)


def _always_fits(type_name: str) -> bool:
    """Whether the declared digits of a type are few enough.

    >>> [_always_fits(name) for name in ("numeric(15,2)", "numeric(20,2)", "numeric(20,13)", "numeric")]
    [True, False, False, False]
    """
    declared = SCALED.fullmatch(type_name)
    return declared is not None and int(declared[1]) - int(declared[2]) <= 16 and int(declared[2]) <= 12


def _kind(sql: str, fits: str) -> str:
    """Tell NULL (0), a value that fits (1), NaN (2), both infinities (3, 4), and what does not fit (5) apart."""
    return (
        f"CAST(CASE WHEN ({sql}) IS NULL THEN 0 WHEN ({sql}) = 'NaN' THEN 2 WHEN ({sql}) = 'Infinity' THEN 3"
        f" WHEN ({sql}) = '-Infinity' THEN 4 WHEN {fits} THEN 1 ELSE 5 END AS smallint)"
    )


def _value(sql: str, fits: str) -> str:
    finite = f"({sql}) > '-Infinity' AND ({sql}) < 'Infinity'"
    return f"CAST(CASE WHEN {finite} THEN CASE WHEN {fits} THEN {sql} ELSE 0 END ELSE 0 END AS {VALUE})"


def _fits(sql: str) -> str:
    return f"abs({sql}) < {LARGEST} AND round({sql}, 12) = ({sql})"


def _aggregates(call: Call, type_name: str) -> dict[str, str]:
    """Write the aggregates of one call in Spark's SQL, under the names of the state's columns."""
    name = call.argument
    if call.function in {"min", "max"}:
        return {f"{call.name}_v": f"{call.function}({name}) FILTER (WHERE {WEIGHT} > 0)"}
    if type_name in INTEGERS:
        count = _counted(f"{name} IS NOT NULL")
        product = f"coalesce(CAST({name} AS DECIMAL(20,0)), 0) * CAST({WEIGHT} AS {WEIGHT_TYPE})"
        return {f"{name}_n": count, f"{name}_s": _summed(f"coalesce({product}, {_RAISE})")}
    if not is_numeric(type_name):
        return {f"{name}_n": _counted(f"{name}_kind = 1")}
    product = f"{name}_value * CAST({WEIGHT} AS {WEIGHT_TYPE})"
    fitting = f"CASE WHEN {name}_kind = 5 THEN {_RAISE} ELSE coalesce({product}, {_RAISE}) END"
    return {
        f"{name}_n": _counted(f"{name}_kind > 0"),
        f"{name}_s": _summed(fitting),
        f"{name}_nan": _counted(f"{name}_kind = 2"),
        f"{name}_pinf": _counted(f"{name}_kind = 3"),
        f"{name}_ninf": _counted(f"{name}_kind = 4"),
    }


def _counted(condition: str) -> str:
    return f"sum(CASE WHEN {condition} THEN {WEIGHT} ELSE 0 END)"


def _summed(product: str) -> str:
    """Sum what is never NULL: a sum that is NULL although there are rows does not fit."""
    return f"CASE WHEN count(1) > 0 THEN coalesce(sum({product}), {_RAISE}) END"
