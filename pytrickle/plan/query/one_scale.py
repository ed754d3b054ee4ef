"""Numbers that have as many digits behind the point as all others of an expression: then equal ones are one text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import exp

from pytrickle.plan.query.block import Block
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.sql.fallible import written_type

WHOLE = frozenset(("year", "month", "day", "hour", "minute", "quarter", "week", "dow", "doy", "isodow", "isoyear"))
DECLARED = re.compile(r"(?:smallint|integer|bigint|numeric\(\d+(?:,(-?\d+))?\))")
PLAIN = re.compile(r"\d+(\.\d+)?")
# How many digits values of an expression may have behind the point; None among them where nobody knows.
Scales = frozenset[int | None]


def one_scale(facts: Facts, found: Iterable[tuple[Block, exp.Expr]]) -> int | None:
    """Return the scale of the numbers that expressions give, each of a block, if all of them have the same.

    Such numbers are finite, or NaN: no type with a declared scale has infinities.
    """
    scales = Scales().union(*(_scales(facts, node, block) for block, node in found))
    return next(iter(scales)) if len(scales) == 1 else None


def _scales(facts: Facts, node: exp.Expr, block: Block) -> Scales:
    """Return the scales of sums, products, and choices; NULL has none."""
    bare = node.unnest()
    match bare:
        case exp.Null():
            return Scales()
        case exp.Add() | exp.Sub() | exp.Mul():
            left, right = (_scales(facts, each, block) for each in (bare.this, bare.expression))
            return Scales(_computed(bare, one, other) for one in left for other in right)
        case exp.Case():
            branches = [*(branch.args["true"] for branch in bare.args["ifs"]), bare.args.get("default") or exp.Null()]
            return Scales().union(*(_scales(facts, branch, block) for branch in branches))
        case exp.Neg():
            return _scales(facts, bare.this, block)
        case exp.Cast() if written_type(bare.to) == "numeric":
            return _scales(facts, bare.this, block)
        case _:
            return Scales([_declared(facts, bare, block)])


def _computed(node: exp.Expr, left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    return left + right if isinstance(node, exp.Mul) else max(left, right)


def _declared(facts: Facts, node: exp.Expr, block: Block) -> int | None:
    """Return the scale that is written, that a column's type declares, or that parts of a date have."""
    match node:
        case exp.Extract():
            return 0 if node.name.lower() in WHOLE else None
        case exp.Literal():
            return len(node.name.partition(".")[2]) if not node.is_string and PLAIN.fullmatch(node.name) else None
        case exp.Cast():
            return _of_type(written_type(node.to))
        case exp.Column():
            return _of_type(facts.declared_type(node, block) or "")
        case _:
            return None


def _of_type(type_name: str) -> int | None:
    found = DECLARED.fullmatch(type_name)
    return max(int(found[1] or 0), 0) if found else None
