"""Whole rows: what `t.*` stands for in an expression, such as count(t.*) or row_to_json(t.*)."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from pytrickle.catalog.definition import Definition, Source, View
from pytrickle.plan.query.block import Block, aliased, cast_to, marked
from pytrickle.plan.query.scope import WHOLE, renamed
from pytrickle.plan.sql.dialect import quote

ROW = "pgt_whole_row"
Columns = Mapping[str, exp.Expr]


def under_alias(
    blocks: tuple[Block, ...], item: exp.Expr, definition: Definition, of: View | None = None
) -> tuple[Block, ...]:
    """Name the columns of a subquery, or of a view, as its alias in FROM says."""
    alias, aliases = item.alias_or_name, item.alias_column_names
    named = (block.named({alias: renamed(block.names[""], aliases)}) for block in blocks)
    return tuple(with_rows(block, alias, definition, of) for block in named)


def with_rows(block: Block, alias: str, definition: Definition, of: Source | View | None = None) -> Block:
    """Name the whole row of a FROM item beside its columns, where the query asks for it.

    `of` is the table or view whose type the row has; without it the row is a record with the columns' names. A row of a
    table of which not every column is captured is left out.
    """
    columns = block.names[alias]
    if not is_asked_for(alias, definition) or not columns:
        return block
    if isinstance(of, Source) and len(of.used) < len(of.columns):
        return block
    row = _record(columns) if of is None else _of_type(columns, f"{quote(of.schema)}.{quote(of.name)}")
    return block.named({**block.names, alias: {**columns, WHOLE: row}})


def is_asked_for(alias: str, definition: Definition) -> bool:
    """Whether the text may name a whole row of that alias; an answer too many costs a column that nobody reads."""
    texts = (definition.text, *(view.text for view in definition.views))
    return any(f"{name}.*" in text for text in texts for name in (alias, quote(alias)))


def _of_type(columns: Columns, type_name: str) -> exp.Expr:
    row = exp.Anonymous(this="ROW", expressions=[column.copy() for column in columns.values()])
    return marked(cast_to(row, type_name), "row")


def _record(columns: Columns) -> exp.Expr:
    """Write a record that knows the names of its columns, as ROW(...) does not."""
    shown = [aliased(column, name) for name, column in columns.items()]
    alias = exp.TableAlias(this=exp.to_identifier(ROW, quoted=True))
    one = exp.Subquery(this=exp.Select(expressions=shown), alias=alias)
    whole = exp.Select(expressions=[exp.Var(this=ROW)], from_=exp.From(this=one))
    return marked(exp.Subquery(this=whole), "row")
