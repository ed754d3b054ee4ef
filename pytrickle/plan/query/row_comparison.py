"""Rows of several columns compared with the rows of a subquery, column by column: (a, b) = (SELECT x, y ...)."""

from __future__ import annotations

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.lateral import reads_no_table
from pytrickle.plan.sql.three_valued import COMPARISONS

Columns = list[exp.Expr]


def items_of(node: exp.Expr) -> Columns:
    """List the columns of a row that is written out; any other value stands for itself."""
    bare = node.unnest()
    if isinstance(bare, exp.Tuple) or (isinstance(bare, exp.Anonymous) and str(bare.this).upper() == "ROW"):
        return list(bare.expressions)
    return [node]


def compared_query(node: exp.Expr) -> exp.Expr | None:
    """Return the subquery whose one row of several columns a node compares with a row, if it does."""
    return node.expression if isinstance(node, COMPARISONS) and width(node.expression) > 1 else None


def width(node: exp.Expr) -> int:
    """Count the columns of a subquery that reads tables; anything else counts as one."""
    query = node.unnest()
    if not isinstance(query, exp.Select | exp.SetOperation) or reads_no_table(query):
        return 1
    return len(query.selects)


def by_columns(node: exp.Expr, left: Columns, right: Columns) -> exp.Expr:
    """Compare two rows as PostgreSQL does: they are equal if all columns are, and unequal if any two columns are."""
    if len(left) != len(right):
        raise NotDifferentiable("a comparison of a row with a subquery of another width")
    pairs = zip(left, right, strict=True)
    match node:
        case exp.EQ():
            return exp.Paren(this=exp.and_(*(exp.EQ(this=one, expression=other) for one, other in pairs)))
        case exp.NEQ():
            return exp.Paren(this=exp.or_(*(exp.NEQ(this=one, expression=other) for one, other in pairs)))
        case _:
            return type(node)(this=exp.Tuple(expressions=left), expression=exp.Tuple(expressions=right))
