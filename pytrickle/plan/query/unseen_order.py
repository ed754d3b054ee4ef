"""Arrays of a subquery's rows of which nobody sees the order: they are sorted, so as to be the same each time."""

from sqlglot import exp

from pytrickle.plan.query.select_clauses import is_distinct_on
from pytrickle.plan.query.subquery_nodes import is_array

COMPARED_AS_SETS = exp.ArrayOverlaps | exp.ArrayContainsAll | exp.ArrayContainedBy
COUNTING = frozenset({"CARDINALITY", "ARRAY_LENGTH"})


def sort_unseen(tree: exp.Expr) -> exp.Expr:
    """Return a query in which such arrays are sorted.

    >>> from pytrickle.plan.sql.dialect import parse_query, render
    >>> render(sort_unseen(parse_query("SELECT a && ARRAY(SELECT b FROM c), a = ARRAY(SELECT b FROM c)")))
    'SELECT "a" && ARRAY(SELECT "b" FROM "c" ORDER BY "b"), "a" = ARRAY(SELECT "b" FROM "c")'
    """
    result = tree.copy()
    for node in result.find_all(exp.Anonymous):
        if is_array(node) and _is_unseen(node) and _may_be_sorted(node.expressions[0]):
            first = node.expressions[0].selects[0].unalias().copy()
            node.expressions[0].set("order", exp.Order(expressions=[exp.Ordered(this=first)]))
    return result


def _is_unseen(array: exp.Expr) -> bool:
    around = array.parent
    while isinstance(around, exp.Paren | exp.Cast):
        around = around.parent
    if isinstance(around, exp.Anonymous):
        return str(around.this).upper() in COUNTING
    return isinstance(around, COMPARED_AS_SETS)


def _may_be_sorted(query: exp.Query) -> bool:
    chosen = any(query.args.get(clause) for clause in ("order", "limit", "offset"))
    return not chosen and not (isinstance(query, exp.Select) and is_distinct_on(query))
