"""Joins of tables as they are written: where nothing is to be taken back, the state of their sum of products.

Each outer join has three products for one, and a state that several of them make is read through all products of all of
them. PostgreSQL reads it in one go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.constructs.folded import TABLE
from pytrickle.plan.algebra.relation import Scan
from pytrickle.plan.query.block import Block
from pytrickle.plan.query.scope import MERGED, WHOLE, Names, resolve, tables_of
from pytrickle.plan.sql.dialect import quote, render

ROWS = "SELECT {items} FROM {joined}"


@dataclass(frozen=True, slots=True)
class WrittenJoin:
    """The text of what stands in FROM, and what visible names stand for in it: columns of some `aliases`."""

    text: str
    names: Names
    aliases: frozenset[str]

    @classmethod
    def of(cls, blocks: tuple[Block, ...]) -> WrittenJoin | None:
        """Write a table, which may be another one by the time it is read; None for anything else."""
        if len(blocks) != 1 or blocks[0].predicates or blocks[0].negated:
            return None
        match blocks[0].leaves:
            case (Scan(alias=alias, relid=relid),):
                text = f"{TABLE.format(relid=relid)} AS {quote(alias)}"
                return cls(text, blocks[0].names, frozenset({alias}))
        return None

    def joined(self, right: WrittenJoin, join: exp.Join) -> WrittenJoin | None:
        """Join a table, unless by USING or by what is no condition on the rows of both sides alone."""
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
