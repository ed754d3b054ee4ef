"""Joins of tables and queries as they are written: where nothing is to be taken back, the state of their products.

Each outer join has three products for one, and a state that several of them make is read through all products of all of
them. PostgreSQL reads it in one go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.constructs.folded import TABLE
from pytrickle.plan.algebra.relation import Scan, operations
from pytrickle.plan.query.block import Block, own_column, project
from pytrickle.plan.query.context import Ctes
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.scope import MERGED, WHOLE, Names, resolve, tables_of
from pytrickle.plan.query.whole_row import is_asked_for
from pytrickle.plan.sql.dialect import parse_query, quote, render

Blocks = tuple[Block, ...]
ROWS = "SELECT {items} FROM {joined}"


@dataclass(frozen=True, slots=True)
class WrittenJoin:
    """The text of what stands in FROM, and what visible names stand for in it: columns of some `aliases`."""

    text: str
    names: Names
    aliases: frozenset[str]

    @classmethod
    def of(cls, blocks: Blocks) -> WrittenJoin | None:
        """Write a table, which may be another one by the time it is read; None for anything else.

        What is computed from a row, or a constant, would not be NULL where an outer join finds none.
        """
        if len(blocks) != 1 or blocks[0].predicates or blocks[0].negated or not _shows_columns(blocks[0]):
            return None
        match blocks[0].leaves:
            case (Scan(alias=alias, relid=relid),):
                text = f"{TABLE.format(relid=relid)} AS {quote(alias)}"
                return cls(text, blocks[0].names, frozenset({alias}))
        return None

    @classmethod
    def of_query(cls, item: exp.Table | exp.Subquery, blocks: Blocks, ctes: Ctes, facts: Facts) -> WrittenJoin | None:
        """Write a subquery, a view or a named query over nothing but tables, of which the blocks were read.

        None for anything else, and where PostgreSQL may choose among rows or values otherwise than a delta.
        """
        found = in_its_place(item, ctes, facts.definition)
        if not isinstance(found, exp.Subquery) or not all(map(_is_settled, blocks)):
            return None
        listed = list[str](item.alias_column_names)
        names = [*listed, *[each.alias_or_name for each in found.this.selects][len(listed) :]]
        if not all(names) or len(set(names)) < len(names):
            return None
        alias, columns = facts.alias(), ", ".join(map(quote, names))
        shown = {item.alias_or_name: {name: own_column(alias, name) for name in names}}
        return cls(f"({render(found.this)}) AS {quote(alias)} ({columns})", shown, frozenset({alias}))

    def joined(self, right: WrittenJoin, join: exp.Join) -> WrittenJoin | None:
        """Join an item, unless by USING or by what is no condition on the rows of both sides alone."""
        beside = f"({right.text})" if len(right.aliases) > 1 else right.text
        condition, names = join.args.get("on"), {**self.names, **right.names}
        if join.args.get("using") or len(names) < len(self.names) + len(right.names):
            return None
        aliases = self.aliases | right.aliases
        if condition is None:
            text = f"{self.text} CROSS JOIN {beside}"
            return None if join.side else WrittenJoin(text, names, aliases)
        try:
            test = resolve(condition, names)
        except NotDifferentiable:
            return None
        if not tables_of(test) <= aliases:
            return None
        kind = f"{join.side} JOIN" if join.side else "JOIN"
        return WrittenJoin(f"{self.text} {kind} {beside} ON ({render(test)})", names, aliases)

    def rows(self, visible: Iterable[tuple[str, str]], named: Iterable[str]) -> str | None:
        """Write the rows with their visible columns under some names; None where one is not a column of a table.

        A whole row of a table that has none for a row is NULL, and not a row of NULLs.
        """
        found = [(self.names.get(alias, {}).get(column), alias, column) for alias, column in visible]
        if any(each is None or alias == MERGED or column == WHOLE for each, alias, column in found):
            return None
        items = (f"{render(each)} AS {name}" for (each, _, _), name in zip(found, named, strict=True) if each)
        return ROWS.format(items=", ".join(items), joined=self.text)


def _is_settled(block: Block) -> bool:
    """Whether neither an order of rows nor a choice among equal values decides about what a block shows."""
    below = operations(project(block, ()))
    return all(each.settled and not each.representatives for each in below)


def _shows_columns(block: Block) -> bool:
    """Whether all visible names are columns of leaves; whole rows are looked at where they are read."""
    shown = [(name, each) for columns in block.names.values() for name, each in columns.items()]
    return all(name == WHOLE or isinstance(each, exp.Column) for name, each in shown)


def in_its_place(item: exp.Table | exp.Subquery, ctes: Ctes, definition: Definition) -> exp.Expr | None:
    """Return what stands for an item of FROM in a text of its own; None for what is stored, or has a WITH clause.

    A table may be another one by the time it is read.
    """
    if isinstance(item, exp.Subquery):
        return _as_subquery(item.this, ctes, definition, item)
    named = ctes.get(item.name) if not item.db else None
    if named is not None:
        plain = named.around is None and not named.entry.alias_column_names
        return _as_subquery(named.entry.this, named.scope, definition, item) if plain else None
    for view in definition.views:
        if (view.schema, view.name) == (item.db, item.name):
            query = parse_query(view.text, definition.aggregates)
            return None if view.stored else _as_subquery(query, {}, definition, item)
    for source in definition.sources:
        if (source.schema, source.name) == (item.db, item.name):
            return _named(exp.Table(this=exp.Var(this=TABLE.format(relid=source.relid))), item)
    return None


def _as_subquery(query: exp.Expr, ctes: Ctes, definition: Definition, item: exp.Expr) -> exp.Expr | None:
    if query.find(exp.With, exp.TableSample) or is_asked_for(item.alias_or_name, definition):
        return None
    result = exp.Subquery(this=query.copy())
    for table in [each for each in result.find_all(exp.Table) if isinstance(each.this, exp.Identifier)]:
        found = in_its_place(table, ctes, definition)
        if found is None:
            return None
        # Moved, not copied: the tables in them are yet to be replaced.
        found.set("joins", table.args.get("joins"))
        table.replace(found)
    return _named(result, item)


def _named(found: exp.Expr, item: exp.Expr) -> exp.Expr:
    """Give what stands for an item the name that the item has."""
    alias = item.args.get("alias")
    named = alias.copy() if alias else exp.TableAlias(this=exp.to_identifier(item.alias_or_name, quoted=True))
    found.set("alias", named)
    return found
