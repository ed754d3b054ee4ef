"""Aliases of joins in parentheses: `(a JOIN b USING (k)) AS x (p, q)` hides what it joins behind columns of its own."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.block import Block
from pytrickle.plan.query.scope import MERGED, WHOLE, Names, first_named

# A column of a join: the alias of the item that it is of, MERGED for those that USING unites, and its name.
Place = tuple[str, str]


def is_joined(item: exp.Expr) -> bool:
    """Whether a FROM item is no query, but a table or a subquery with joins of its own."""
    nested = isinstance(item, exp.Subquery) and bool(item.alias or item.args.get("joins"))
    return nested or isinstance(item, exp.Table)


def under_join_alias(definition: Definition, blocks: tuple[Block, ...], item: exp.Subquery) -> tuple[Block, ...]:
    """Name the columns of a join by its alias alone; an alias list counts those, too, that nothing reads."""
    places = list(_places(definition, item.this, blocks[0].names))
    aliases = item.alias_column_names
    names = [*aliases, *(name for _, name in places[len(aliases) :])]
    if len(set(names)) < len(names):
        raise NotDifferentiable("an alias of a join that has a column twice")
    return tuple(block.named({item.alias: dict(_columns(block.names, names, places))}) for block in blocks)


def _columns(visible: Names, names: list[str], places: list[Place]) -> Iterator[tuple[str, exp.Expr]]:
    for name, (alias, column) in zip(names, places, strict=True):
        found = first_named(visible, column) if alias == MERGED else visible[alias].get(column)
        if found is not None:
            yield name, found


def _places(definition: Definition, item: exp.Expr, visible: Names) -> list[Place]:
    """List the columns of a FROM item and its joins in the order in which PostgreSQL shows them."""
    found = _own(definition, item, visible)
    for join in item.args.get("joins") or ():
        other = _places(definition, join.this, visible)
        united = [name.name for name in join.args.get("using") or ()]
        rest = [place for place in (*found, *other) if place[1] not in united]
        found = [*((MERGED, name) for name in united), *rest]
    return found


def _own(definition: Definition, item: exp.Expr, visible: Names) -> list[Place]:
    if isinstance(item, exp.Subquery) and not item.alias and is_joined(item.this):
        return _places(definition, item.this, visible)
    alias = item.alias_or_name
    if isinstance(item, exp.Table):
        for source in definition.sources:
            if (source.schema, source.name) == (item.db, item.name):
                own = [column.name for column in source.columns]
                return [(alias, name) for name in [*item.alias_column_names, *own[len(item.alias_column_names) :]]]
    return [(alias, name) for name in visible.get(alias, {}) if name != WHOLE]
