"""What an aggregate call keeps per group: columns that add up, and how its result follows from them."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from pytrickle.plan.algebra.query import Call
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.scales import added_scales, widest_scale

INTEGERS = frozenset({"smallint", "integer", "bigint"})
SCALED = re.compile(r"numeric\((\d+),(-?\d+)\)")
TOTAL = "CAST(coalesce(sum({column}), 0) AS {type_name})"
COUNTED = "CAST(coalesce(sum({weight}) FILTER (WHERE {condition}), 0) AS bigint)"
COUNTED_ONCE = "count(*) FILTER (WHERE {condition})"
NO_ROWS = "CAST(0 AS bigint)"
# Products of numerics take long, and nearly all weights are 1 or -1.
PRODUCT = "CASE {weight} WHEN 1 THEN {factor} WHEN -1 THEN -{factor} ELSE {weight} * {factor} END"
SUM_OF_SHORT_INTEGERS = "coalesce(sum({weight} * CAST({argument} AS bigint)), 0)"
SUM_OF_INTEGERS_ONCE = "coalesce(CAST(sum({argument}) AS numeric), 0)"
SUM = "coalesce(sum({value}), 0)"
SUM_OF_FINITE = "coalesce(sum({value}) FILTER (WHERE {finite}), 0)"
# A declared precision keeps infinities out, but not NaN; so do sums and products of such values.
FINITE = "{argument} > '-Infinity' AND {argument} < 'Infinity'"
FINITE_IF_ONE_SCALE = "{argument} <> 'NaN'"
SCALES = "jsonb_agg(jsonb_build_array({scale}, {count})) FILTER (WHERE {scale} IS NOT NULL)"
# What PostgreSQL's own sum and avg give where some value is NaN or infinite.
SUM_OR_AVG = """\
CASE WHEN {column}_n = 0 THEN NULL \
WHEN {column}_nan > 0 OR ({column}_pinf > 0 AND {column}_ninf > 0) THEN CAST('NaN' AS numeric) \
WHEN {column}_pinf > 0 THEN CAST('Infinity' AS numeric) \
WHEN {column}_ninf > 0 THEN CAST('-Infinity' AS numeric) \
ELSE {value} END"""


class Merge(StrEnum):
    """How a group's stored value and its increment become the new value."""

    ADD = "add"
    SCALES = "scales"
    LEAST = "least"
    GREATEST = "greatest"
    RECOMPUTE = "recompute"


@dataclass(frozen=True, slots=True)
class StateColumn:
    """One column of the aggregate state.

    `increment` is an SQL aggregate over weighted rows, and `once` the same over rows that all have weight one, which
    takes less time. `value`, for columns that cannot always be merged, is the plain aggregate over all rows of the
    group, as a keyed recomputation reads it.
    """

    name: str
    merge: Merge
    increment: str
    once: str
    value: str | None = None

    def combined(self) -> str:
        """Write the aggregate that combines increments of parts of one group."""
        match self.merge:
            case Merge.ADD:
                return TOTAL.format(column=self.name, type_name="numeric" if self.name.endswith("_s") else "bigint")
            case Merge.SCALES:
                scale, count = f"{self.name[:-1]}", f"{self.name.removesuffix('_scales')}_n"
                return SCALES.format(scale=scale, count=count)
            case Merge.LEAST | Merge.GREATEST | Merge.RECOMPUTE:
                return f"{'max' if self.merge is Merge.GREATEST else 'min'}({self.name})"

    def moves(self, row: str) -> str:
        """Write whether the increment in a row changes the value that it is merged with; NULL is no."""
        match self.merge:
            case Merge.ADD:
                return f"{row}.{self.name} <> 0"
            case Merge.SCALES:
                return f"jsonb_path_exists({row}.{self.name}, 'strict $[*] ? (@[1] <> 0)')"
            case Merge.LEAST | Merge.GREATEST | Merge.RECOMPUTE:
                return f"{row}.{self.name} IS NOT NULL"

    def merged(self) -> str:
        """Write the new value over the state row `s` and the increment row `i`."""
        match self.merge:
            case Merge.ADD:
                return f"s.{self.name} + i.{self.name}"
            case Merge.SCALES:
                return added_scales(f"s.{self.name}", f"i.{self.name}")
            case Merge.LEAST | Merge.GREATEST:
                return f"{self.merge.value}(s.{self.name}, i.{self.name})"
            case Merge.RECOMPUTE:
                return f"s.{self.name}"


def is_exact(type_name: str) -> bool:
    """Whether sums over a type do not depend on the order of the rows, and so may be accumulated."""
    return type_name in INTEGERS or is_numeric(type_name)


def is_numeric(type_name: str) -> bool:
    """Whether a type is numeric, with or without a declared scale."""
    return type_name == "numeric" or SCALED.fullmatch(type_name) is not None


def state_columns(calls: tuple[Call, ...], types: dict[str, str]) -> tuple[StateColumn, ...]:
    """List the state columns of some calls; `types` gives the type of every argument column."""
    columns = {"pgt_rows": _rows_column()}
    for call in calls:
        for column in _columns_of(call, types):
            columns.setdefault(column.name, column)
    return tuple(columns.values())


def result(call: Call, types: dict[str, str]) -> str:
    """Write a call's result over the state columns, as PostgreSQL's own aggregate would give it."""
    if call.written:
        return f"{call.name}_v"
    if call.argument is None:
        return "pgt_rows"
    argument, type_name = call.argument, types[call.argument]
    if call.function == "count":
        return f"{argument}_n"
    if call.function in {"min", "max"} or not is_exact(type_name):
        return f"{call.name}_v"
    return _sum_or_avg(call, argument, type_name)


def _rows_column() -> StateColumn:
    return StateColumn("pgt_rows", Merge.ADD, TOTAL.format(column=WEIGHT, type_name="bigint"), "count(*)")


def _columns_of(call: Call, types: dict[str, str]) -> list[StateColumn]:
    if call.written:
        return [StateColumn(f"{call.name}_v", Merge.RECOMPUTE, call.written, call.written, call.placed)]
    if call.argument is None:
        return []
    argument, type_name = call.argument, types[call.argument]
    plain = f"{call.function}({argument})"
    if call.function in {"min", "max"}:
        merge = Merge.LEAST if call.function == "min" else Merge.GREATEST
        return [StateColumn(f"{call.name}_v", merge, f"{plain} FILTER (WHERE {WEIGHT} > 0)", plain, plain)]
    if call.function == "count":
        return [_not_null(argument)]
    if not is_exact(type_name):
        none = f"{plain} FILTER (WHERE false)"
        return [StateColumn(f"{call.name}_v", Merge.RECOMPUTE, none, none, plain)]
    if type_name in INTEGERS:
        return [_not_null(argument), _whole(argument, type_name)]
    return [_not_null(argument), *_scaled(argument, _scale(call, type_name) is not None)]


def _scale(call: Call, type_name: str) -> int | None:
    """Return the scale that all values have which a call adds up, by their type or as they are computed."""
    declared = SCALED.fullmatch(type_name)
    return int(declared[2]) if declared else call.scale


def _whole(argument: str, type_name: str) -> StateColumn:
    """Sum whole numbers. Only products with a bigint may need more than 64 bits."""
    total = SUM_OF_SHORT_INTEGERS.format(weight=WEIGHT, argument=argument)
    if type_name == "bigint":
        total = SUM.format(value=PRODUCT.format(weight=WEIGHT, factor=f"CAST({argument} AS numeric)"))
    return StateColumn(f"{argument}_s", Merge.ADD, total, SUM_OF_INTEGERS_ONCE.format(argument=argument))


def _scaled(argument: str, of_one_scale: bool) -> list[StateColumn]:
    """Sum numerics; where they are not all of one scale, count how many there are of each."""
    finite = (FINITE_IF_ONE_SCALE if of_one_scale else FINITE).format(argument=argument)
    product = PRODUCT.format(weight=WEIGHT, factor=argument)
    total, once = (SUM_OF_FINITE.format(value=value, finite=finite) for value in (product, argument))
    kinds = {"nan": "NaN", "pinf": "Infinity", "ninf": "-Infinity"}
    counted = [_special(argument, suffix, value) for suffix, value in kinds.items()]
    columns = [StateColumn(f"{argument}_s", Merge.ADD, total, once), *counted]
    if of_one_scale:
        return [*columns[:2], *(replace(column, increment=NO_ROWS, once=NO_ROWS) for column in columns[2:])]
    scales = "CAST(NULL AS jsonb)"
    return [*columns, StateColumn(f"{argument}_scales", Merge.SCALES, scales, scales)]


def _not_null(argument: str) -> StateColumn:
    increment = COUNTED.format(weight=WEIGHT, condition=f"{argument} IS NOT NULL")
    return StateColumn(f"{argument}_n", Merge.ADD, increment, f"count({argument})")


def _special(argument: str, suffix: str, value: str) -> StateColumn:
    condition = f"{argument} = '{value}'"
    increment, once = COUNTED.format(weight=WEIGHT, condition=condition), COUNTED_ONCE.format(condition=condition)
    return StateColumn(f"{argument}_{suffix}", Merge.ADD, increment, once)


def _sum_or_avg(call: Call, argument: str, type_name: str) -> str:
    total = f"{argument}_s"
    if type_name in INTEGERS:
        exact = f"CAST({total} AS bigint)" if type_name != "bigint" and call.function == "sum" else total
        return f"CASE WHEN {argument}_n > 0 THEN {_divided(call, exact, argument)} END"
    scale = _scale(call, type_name)
    widest = widest_scale(f"{argument}_scales") if scale is None else scale
    value = _divided(call, f"round({total}, {widest})", argument)
    return SUM_OR_AVG.format(column=argument, value=value)


def _divided(call: Call, total: str, argument: str) -> str:
    return f"{total} / {argument}_n" if call.function == "avg" else total
