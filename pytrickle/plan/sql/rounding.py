"""Aggregates whose last digits depend on the order in which rows are added up."""

from pytrickle.errors import NotDifferentiable

FLOATING = frozenset({"real", "double precision"})
ROUNDING = ("sum", "avg", "stddev", "var", "corr", "covar", "regr")


def refuse_rounding(function: str, result_type: str) -> None:
    """Refuse to maintain a function that adds up floating-point numbers: in another order they come to another sum.

    >>> refuse_rounding("sum", "numeric"), refuse_rounding("max", "real")
    (None, None)
    """
    if result_type in FLOATING and function.startswith(ROUNDING):
        raise NotDifferentiable(f"{function}() over {result_type}, whose last digits depend on the order of rows")
