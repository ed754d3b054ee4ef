"""Which nodes of an expression are subqueries, with what belongs to them."""

from sqlglot import exp


def is_subquery(node: exp.Expr) -> bool:
    """Whether a node is a subquery with what belongs to it."""
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    if isinstance(node, exp.Binary) and isinstance(node.expression, exp.Any | exp.All):
        return isinstance(node.expression.this.unnest(), exp.Query)
    return isinstance(node, exp.Exists | exp.Query) or _is_array(node)


def _is_array(node: exp.Expr) -> bool:
    """Whether a node is ARRAY(subquery): no function takes a subquery without parentheses of its own."""
    return isinstance(node, exp.Anonymous) and any(
        isinstance(each, exp.Query) and not isinstance(each, exp.Subquery) for each in node.expressions
    )


def has_query_operand(node: exp.Expr) -> bool:
    """Whether what is compared with the rows of a subquery has subqueries itself."""
    compares = isinstance(node, exp.In | exp.Binary)
    return compares and node.this.find(exp.Query) is not None
