"""Keys whose equal values may look different, such as 1 and 1.00: a group shows a value that one of its rows has.

The state of a group keeps the key of the row that came first, which may go while others stay. So the least of the
group's values is shown: they are all equal, and when a row goes that has one the group is computed anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sqlglot import exp

from pytrickle.plan.algebra.relation import Relation
from pytrickle.plan.query.block import Block, own_column
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.representatives import NUMBERS, TEXTS, differing
from pytrickle.plan.sql.fallible import written_type
from pytrickle.plan.sql.types import base_of

# PostgreSQL 15 has no min() of other types whose equal values may look different, or gives another type.
HAVE_LEAST = NUMBERS | TEXTS | {"interval"}
WHOLE = frozenset(("year", "month", "day", "hour", "minute", "quarter", "week", "dow", "doy", "isodow", "isoyear"))
DECLARED = re.compile(r"(?:smallint|integer|bigint|numeric\(\d+(?:,(-?\d+))?\))")
PLAIN = re.compile(r"\d+(\.\d+)?")


def ambiguous_keys(
    facts: Facts, rows: Relation, keys: tuple[str, ...], settled: frozenset[str]
) -> tuple[str, ...] | None:
    """Return which keys, the first columns of some rows, are of types whose equal values may look different.

    Those that are `settled` are left out. None says that of some of them no least value can be shown.
    """
    found = {key: sort for key, sort in _differing(facts, rows, keys).items() if key not in settled}
    return tuple(found) if all(map(_has_least, found.values())) else None


def keys_with_least(facts: Facts, rows: Relation, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of them of which a least value can be shown."""
    return tuple(key for key, sort in _differing(facts, rows, keys).items() if _has_least(sort))


def _differing(facts: Facts, rows: Relation, keys: tuple[str, ...]) -> dict[str, str]:
    return {key: sort for key, sort in zip(keys, differing(facts, rows), strict=False) if sort}


def _has_least(sort: str) -> bool:
    return base_of(sort.partition(" COLLATE ")[0]) in HAVE_LEAST


def have_one_scale(facts: Facts, found: Iterable[tuple[Block, exp.Expr]]) -> bool:
    """Whether expressions, each of a block, give numbers of one and the same scale: then equal ones are one text."""
    scales = {_scale(facts, node, block) for block, node in found}
    return len(scales) == 1 and None not in scales


def _scale(facts: Facts, node: exp.Expr, block: Block) -> int | None:
    """Return how many digits all values of an expression have behind the point; None where that is not known.

    It is for the parts of a date that are whole numbers, for columns with a declared scale, for sums and products.
    """
    bare = node.unnest()
    match bare:
        case exp.Extract():
            return 0 if bare.name.lower() in WHOLE else None
        case exp.Add() | exp.Sub() | exp.Mul():
            left, right = (_scale(facts, each, block) for each in (bare.this, bare.expression))
            if left is None or right is None:
                return None
            return left + right if isinstance(bare, exp.Mul) else max(left, right)
        case exp.Cast():
            wanted = written_type(bare.to)
            return _scale(facts, bare.this, block) if wanted == "numeric" else _declared(wanted)
        case exp.Literal() if not bare.is_string and PLAIN.fullmatch(bare.name):
            return len(bare.name.partition(".")[2])
        case exp.Column():
            return _declared(facts.declared_type(bare, block) or "")
        case _:
            return None


def _declared(type_name: str) -> int | None:
    found = DECLARED.fullmatch(type_name)
    return max(int(found[1] or 0), 0) if found else None


def show_values(node: exp.Expr, table: str, shown: Mapping[str, str]) -> exp.Expr:
    """Write an expression over keys, of the given table, with the calls that show their values in their places."""

    def replaced(column: exp.Expr) -> exp.Expr:
        if isinstance(column, exp.Column) and column.table == table and column.name in shown:
            return own_column(table, shown[column.name])
        return column

    return node.copy().transform(replaced)
