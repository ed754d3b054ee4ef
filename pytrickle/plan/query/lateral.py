"""What is computed from one row alone: functions in FROM, set-returning calls, and subqueries that read no table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.relation import Function
from pytrickle.plan.postgres.from_item import function_item
from pytrickle.plan.query.block import Block, own_column
from pytrickle.plan.query.calls import is_call
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.order_dependence import refuse_unsettled
from pytrickle.plan.query.scope import WHOLE, Names, columns_named, is_whole, lookup, resolve, unknown_reference
from pytrickle.plan.query.whole_row import ROW, is_asked_for, with_rows
from pytrickle.plan.sql import keyword_calls
from pytrickle.plan.sql.dialect import quote, render

Columns = list[exp.Expr]
DEFINED = "(SELECT * FROM {function} AS pgt_defined({columns}))"
WITH_WHOLE_ROW = "(SELECT {parts}, {row} FROM {function} AS {row}({columns}))"
LEFT_JOINED = "(SELECT {alias}.* FROM (SELECT) AS pgt_one LEFT JOIN LATERAL ({rows}) AS {alias} ON {condition})"


def function(facts: Facts, item: exp.Expr, outer: Names) -> Block:
    """Read a set-returning function or VALUES in FROM: computed for each row of what stands to its left."""
    names, alias = _names(item), facts.alias()
    if not names or not (item.alias or isinstance(item, exp.Values)):
        raise NotDifferentiable(f"{item.key.upper()} in FROM without column names")
    bare = item.copy()
    for part in ("alias", "joins"):
        bare.set(part, None)
    written = resolve(bare.this if isinstance(bare, exp.Lateral) else bare, {}, outer)
    text = f"({render(written)})" if isinstance(item, exp.Values) else render(written)
    if isinstance(item, exp.Lateral) and item.args.get("ordinality"):
        text += " WITH ORDINALITY"
    if defined := [render(each) for each in _alias_columns(item) if isinstance(each, exp.ColumnDef)]:
        text = DEFINED.format(function=text, columns=", ".join(defined))
    shown = dict(zip(names, names, strict=True))
    if is_asked_for(item.alias, facts.definition):
        # The same names around the same function give its rows the same type, which may have got attributes since.
        columns = [quote(name) for name in names]
        parts = ", ".join(f"{ROW}.{column}" for column in columns)
        text = WITH_WHOLE_ROW.format(parts=parts, row=ROW, function=text, columns=", ".join(columns))
        shown[WHOLE] = ROW
    leaf = Function(alias, text, _reads([written]), tuple(shown.values()))
    return Block((leaf,), (), {item.alias: {name: own_column(alias, column) for name, column in shown.items()}})


def _names(item: exp.Expr) -> list[str]:
    """List the columns of a function or of VALUES, which PostgreSQL prints where the query cannot tell them."""
    names = list[str](item.alias_column_names)
    if isinstance(item, exp.Values):
        return [*names, *(f"column{i + 1}" for i in range(len(names), len(item.expressions[0].expressions)))]
    call = item.this
    if isinstance(call, exp.Anonymous) and call.this == keyword_calls.TABLE:
        return [*names, *keyword_calls.columns_of(call.expressions[0].name)[len(names) :]]
    return names


def _alias_columns(item: exp.Expr) -> list[exp.Expr]:
    alias = item.args.get("alias")
    return list(alias.columns) if alias else []


def reads_no_table(query: exp.Expr) -> bool:
    """Whether a subquery reads nothing but functions and the row around it."""
    return not any(isinstance(table.this, exp.Identifier) for table in query.find_all(exp.Table))


def embedded(facts: Facts, node: exp.Expr, names: Names, outer: Names) -> exp.Expr:
    """Resolve what a subquery that reads no table takes from the rows around it; the rest stays as it is written.

    Its own FROM items get aliases that no leaf has, and its own columns are no Column any more, so that whoever asks
    what the expression reads finds the rows around it only.
    """
    refuse_unsettled(node)
    result = node.copy()
    own: dict[str, str] = {}
    for alias in list(result.find_all(exp.TableAlias)):
        own.setdefault(alias.name, facts.alias())
        alias.set("this", exp.to_identifier(own[alias.name], quoted=True))
    _refuse_calls_of_outer_rows(result, own, facts.definition.aggregates)
    for column in list(result.find_all(exp.Column)):
        if column.table in own:
            source = exp.to_identifier(own[column.table], quoted=True)
            part = exp.Star() if is_whole(column) else exp.to_identifier(column.name, quoted=True)
            found: exp.Expr = exp.Dot(this=source, expression=part)
        elif not column.table and column.find_ancestor(exp.Query):
            raise unknown_reference(column)
        else:
            found = lookup(column, names, outer).copy()
        if column is result:
            return found
        column.replace(found)
    return result


def _refuse_calls_of_outer_rows(query: exp.Expr, own: dict[str, str], aggregates: frozenset[str]) -> None:
    """An aggregate over nothing but columns of a query around it belongs to that query."""
    for node in query.walk():
        if not is_call(node, aggregates):
            continue
        tables = {column.table for column in node.find_all(exp.Column)}
        if tables and not tables & own.keys():
            raise NotDifferentiable("an aggregate over a column of the query around it")


def lateral(facts: Facts, item: exp.Lateral, outer: Names) -> Block | None:
    """Read LATERAL (subquery without tables) as one function of the row to its left, if its columns have names."""
    query = item.this.unnest()
    if not isinstance(query, exp.Query) or isinstance(query, exp.Values) or not reads_no_table(query):
        return None
    own = [each.alias_or_name for each in query.selects]
    names = [*item.alias_column_names, *own[len(item.alias_column_names) :]]
    if not all(names) or len(set(names)) < len(names) or not names:
        return None
    alias, written = facts.alias(), embedded(facts, query, {}, outer)
    leaf = Function(alias, f"({render(written)})", _reads([written]), tuple(names))
    block = Block((leaf,), (), {item.alias: {name: own_column(alias, name) for name in names}})
    return with_rows(block, item.alias, facts.definition)


def is_rowwise(blocks: tuple[Block, ...]) -> bool:
    """Whether a FROM item is computed from the row to its left alone."""
    return len(blocks) == 1 and not blocks[0].negated and all(isinstance(leaf, Function) for leaf in blocks[0].leaves)


def padded(facts: Facts, block: Block) -> tuple[str, Names]:
    """Prepare a rowwise block for LEFT JOIN: return its alias to be, and the names under which conditions see it."""
    alias = facts.alias()
    names: dict[str, dict[str, exp.Expr]] = {own: {} for own in block.names}
    for position, (own, column) in enumerate(columns_named(block.names)):
        names[own][column] = own_column(alias, f"c{position}")
    return alias, names


def left_joined(block: Block, alias: str, conditions: Iterable[exp.Expr]) -> Function:
    """LEFT JOIN a rowwise block: as part of the function, which then has a row of NULLs where nothing matches."""
    shown = [block.names[own][column] for own, column in columns_named(block.names)]
    names = tuple(f"c{i}" for i in range(len(shown)))
    listed = ", ".join(f"{render(each)} AS {quote(name)}" for each, name in zip(shown, names, strict=True))
    leaves = [leaf for leaf in block.leaves if isinstance(leaf, Function)]
    rows = f"SELECT {listed}" + (f" FROM {', '.join(function_item(leaf) for leaf in leaves)}" if leaves else "")
    if block.predicates:
        rows += f" WHERE {' AND '.join(f'({render(each)})' for each in block.predicates)}"
    tests = list(conditions)
    condition = " AND ".join(f"({render(each)})" for each in tests) or "true"
    reads = _reads([*shown, *block.predicates, *tests]).union(*(leaf.reads for leaf in leaves))
    inside = block.aliases | {alias}
    text = LEFT_JOINED.format(alias=quote(alias), rows=rows, condition=condition)
    return Function(alias, text, frozenset(each for each in reads if each[0] not in inside), names)


def unrolled(facts: Facts, block: Block, columns: Columns) -> tuple[Block, Columns]:
    """Compute output columns that call set-returning functions as one function of the row, which steps them together
    as PostgreSQL does; the others stand beside each of its rows."""
    found = [column for column in columns if calls_set(column, facts.definition)]
    if not found:
        return block, columns
    alias = facts.alias()
    names = tuple(f"c{i}" for i in range(len(found)))
    listed = ", ".join(f"{render(each)} AS {quote(name)}" for each, name in zip(found, names, strict=True))
    leaf = Function(alias, f"(SELECT {listed})", _reads(found), names)
    shown = iter(names)
    replaced = [own_column(alias, next(shown)) if calls_set(each, facts.definition) else each for each in columns]
    return replace(block, leaves=(*block.leaves, leaf)), replaced


def calls_set(expression: exp.Expr, definition: Definition) -> bool:
    """Whether an expression itself calls a set-returning function, apart from its subqueries."""
    names = definition.set_returning
    return any(_name(node) in names for node in expression.walk(prune=lambda node: isinstance(node, exp.Query)))


def _name(node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Anonymous):
        return None
    dot = node.parent
    return f"{dot.this.name}.{node.name}" if isinstance(dot, exp.Dot) and dot.expression is node else node.name


def _reads(expressions: Iterable[exp.Expr]) -> frozenset[tuple[str, str]]:
    return frozenset((column.table, column.name) for each in expressions for column in each.find_all(exp.Column))
