"""Keys whose equal values may look different, such as 1 and 1.00: a group shows a value that one of its rows has.

The state of a group keeps the key of the row that came first, which may go while others stay. So the least of the
group's values is shown: they are all equal, and when a row goes that has one the group is computed anew.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from pytrickle.plan.algebra.relation import Relation
from pytrickle.plan.query.block import own_column
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.representatives import NUMBERS, TEXTS, differing
from pytrickle.plan.sql.types import base_of

# PostgreSQL 15 has no min() of other types whose equal values may look different, or gives another type.
HAVE_LEAST = NUMBERS | TEXTS | {"interval"}


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


def show_values(node: exp.Expr, table: str, shown: Mapping[str, str]) -> exp.Expr:
    """Write an expression over keys, of the given table, with the calls that show their values in their places."""

    def replaced(column: exp.Expr) -> exp.Expr:
        if isinstance(column, exp.Column) and column.table == table and column.name in shown:
            return own_column(table, shown[column.name])
        return column

    return node.copy().transform(replaced)
