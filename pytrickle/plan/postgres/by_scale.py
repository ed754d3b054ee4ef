"""Sums over numeric without a declared scale: what a group keeps of each value, counted by the values' scales.

A value that is NaN or infinite has no scale, so rows are grouped by their scale, or by a number below zero that says
which of the three it is. A row is so tested once, where each column of the state would have to test it again.
"""

from pytrickle.plan.postgres.aggregate import PRODUCT, Merge, StateColumn
from pytrickle.plan.postgres.consolidate import WEIGHT

KINDS = {"nan": -1, "pinf": -2, "ninf": -3}
KIND = """\
coalesce(scale({argument}), CASE {argument} WHEN 'NaN' THEN -1 WHEN 'Infinity' THEN -2 WHEN '-Infinity' THEN -3 END) \
AS {argument}_scale"""
COUNTED = "CAST(coalesce(sum(pgt_rows) FILTER (WHERE {argument}_scale {condition}), 0) AS bigint)"
SUMMED = "coalesce(sum({argument}_s) FILTER (WHERE {argument}_scale >= 0), 0)"
SCALES = "jsonb_agg(jsonb_build_array({argument}_scale, pgt_rows)) FILTER (WHERE {argument}_scale >= 0)"


def arguments_of(state: tuple[StateColumn, ...]) -> tuple[str, ...]:
    """Return the arguments whose values are counted by their scales."""
    return tuple(column.name.removesuffix("_scales") for column in state if column.merge is Merge.SCALES)


def parts(state: tuple[StateColumn, ...], plain: bool) -> tuple[list[str], tuple[str, ...]]:
    """Write what is computed of each part of a group, and name what tells the parts apart besides the group's keys."""
    arguments = arguments_of(state)
    kinds = [KIND.format(argument=argument) for argument in arguments]
    products = {
        argument: argument if plain else PRODUCT.format(weight=WEIGHT, factor=argument) for argument in arguments
    }
    sums = [f"sum({product}) AS {argument}_s" for argument, product in products.items()]
    others = [f"{column.once if plain else column.increment} AS {column.name}" for column in _others(state)]
    return [*kinds, *others, *sums], tuple(f"{argument}_scale" for argument in arguments)


def combined(state: tuple[StateColumn, ...]) -> dict[str, str]:
    """Write the columns of the state over such parts, by their names."""
    columns = {column.name: column.combined() for column in _others(state)}
    for argument in arguments_of(state):
        columns |= _columns(argument)
    return columns


def _others(state: tuple[StateColumn, ...]) -> list[StateColumn]:
    own = {name for argument in arguments_of(state) for name in _columns(argument)}
    return [column for column in state if column.name not in own]


def _columns(argument: str) -> dict[str, str]:
    conditions = {"n": "IS NOT NULL", **{suffix: f"= {kind}" for suffix, kind in KINDS.items()}}
    return {
        **{f"{argument}_{suffix}": COUNTED.format(argument=argument, condition=c) for suffix, c in conditions.items()},
        f"{argument}_s": SUMMED.format(argument=argument),
        f"{argument}_scales": SCALES.format(argument=argument),
    }
