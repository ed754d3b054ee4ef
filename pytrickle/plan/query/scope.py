"""Names: the expression over leaves that every visible column of a FROM clause stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from pytrickle.errors import NotDifferentiable

Names = Mapping[str, Mapping[str, exp.Expr]]

# The alias of what no FROM item names: the merged columns of a FULL JOIN ... USING, and subqueries taken out.
MERGED = "\x00merged"
SUBQUERY = "\x00subquery"
# The left side of a comparison with a subquery that has subqueries itself.
OPERAND = "\x00operand"
# Subqueries that were computed before a grouping or window functions.
HOISTED = "\x00hoisted"
# What GROUP BY unrolls: rows of set-returning functions that were computed before the grouping.
SETS = "\x00sets"
# The column of a FROM item that is its whole row.
WHOLE = "\x00row"


def resolve(expression: exp.Expr, names: Names, outer: Names | None = None) -> exp.Expr:
    """Replace every visible name by what it stands for; names of the query around it come second."""

    def step(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query | exp.Exists):
            raise NotDifferentiable("a subquery in this place")
        if isinstance(node, exp.Window):
            raise NotDifferentiable("a window function in this place")
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null) and is_whole(node.this.unnest()):
            return _row_is_null(node, names, outer or {})
        if not isinstance(node, exp.Column) or node.table == SUBQUERY:
            return node
        return lookup(node, names, outer or {}).copy()

    return expression.copy().transform(step)


def unknown_reference(column: exp.Column) -> NotDifferentiable:
    """Name a reference that the planner cannot follow; what it has named itself is no name to a user."""
    own = "\x00" in column.table or "\x00" in column.name
    what = "an aggregate or a window function of a query around it" if own else column.sql()
    return NotDifferentiable(f"a reference to {what} that the planner cannot follow")


def lookup(column: exp.Column, names: Names, outer: Names) -> exp.Expr:
    """Find what a column reference stands for; expressions come in parentheses."""
    if column.args.get("db"):
        raise unknown_reference(column)
    for scope in (names, outer):
        found = _find(column, scope)
        if found is not None:
            return found if isinstance(found, exp.Column) else exp.Paren(this=found.copy())
        if column.table and column.table in scope:
            # What is nearer hides what is further away, even where it lacks the column.
            break
    if is_whole(column):
        raise NotDifferentiable("a whole-row reference")
    raise unknown_reference(column)


def _row_is_null(test: exp.Is, names: Names, outer: Names) -> exp.Expr:
    """Count the NULLs of a whole row: of ROW(...) with a table's type PostgreSQL counts a dropped column as one.

    Raise NotDifferentiable for a row that the planner cannot follow.
    """
    row = test.this.unnest()
    lookup(row, names, outer)
    columns = next(scope[row.table] for scope in (names, outer) if row.table in scope)
    values = [column.copy() for name, column in columns.items() if name != WHOLE]
    count = exp.Anonymous(this="num_nulls" if test.args.get("negate") else "num_nonnulls", expressions=values)
    return exp.Paren(this=exp.EQ(this=count, expression=exp.Literal.number(0)))


def replacing(stand_ins: Mapping[exp.Expr, exp.Expr]) -> Callable[[exp.Expr], exp.Expr]:
    """Return what replaces expressions, wherever they stand within others, by those that stand in for them."""

    def step(node: exp.Expr) -> exp.Expr:
        return stand_ins[node].copy() if node in stand_ins else node

    return step


def standing_for(names: Names, stand_ins: Mapping[exp.Expr, exp.Expr]) -> Names:
    """Replace expressions in what names stand for."""
    step = replacing(stand_ins)
    return {alias: {name: each.transform(step) for name, each in columns.items()} for alias, columns in names.items()}


def reads_around(query: exp.Expr, outer: Names) -> bool:
    """Whether a query, or an expression, refers to a FROM item around it by an alias that it does not give itself."""
    own = {each.name for each in query.find_all(exp.TableAlias)} | {
        each.alias_or_name for each in query.find_all(exp.Table)
    }
    return any(column.table in outer and column.table not in own for column in query.find_all(exp.Column))


def is_whole(node: exp.Expr) -> bool:
    """Whether an expression is a reference to a whole row."""
    return isinstance(node, exp.Column) and isinstance(node.this, exp.Star)


def column_name(column: exp.Column) -> str:
    """Return the name under which a FROM item has a column, or its whole row."""
    return WHOLE if is_whole(column) else str(column.name)


def has_name(names: Names, column: exp.Column) -> bool:
    """Whether a column reference names one of these."""
    return _find(column, names) is not None


def columns_named(names: Names) -> list[tuple[str, str]]:
    """List all visible columns as (alias, column)."""
    return [(alias, column) for alias, columns in names.items() for column in columns]


def tables_of(expression: exp.Expr) -> frozenset[str]:
    """Return the aliases of the leaves that a resolved expression reads."""
    return frozenset(column.table for column in expression.find_all(exp.Column))


def renamed(columns: Mapping[str, exp.Expr], aliases: list[str]) -> dict[str, exp.Expr]:
    """Give the first columns the names of an alias list."""
    return dict(zip([*aliases, *list(columns)[len(aliases) :]], columns.values(), strict=True))


def first_named(names: Names, column: str) -> exp.Expr:
    """Find the column of a USING clause on one side of the join."""
    for scope in (names.get(MERGED, {}), *(columns for alias, columns in names.items() if alias != MERGED)):
        if column in scope:
            return scope[column]
    raise NotDifferentiable(f"USING ({column})")


def single_source(names: Names) -> str | None:
    """Find the alias of the only FROM item: PostgreSQL 16 and later print its columns without it."""
    sources = [alias for alias in names if not alias.startswith("\x00")]
    return sources[0] if len(sources) == 1 else None


def _find(column: exp.Column, names: Names) -> exp.Expr | None:
    if column.table:
        return names.get(column.table, {}).get(column_name(column))
    if column.name in names.get(MERGED, {}):
        return names[MERGED][column.name]
    alias = single_source(names)
    return names[alias].get(column.name) if alias is not None else None
