"""Conditions within EXISTS that no row of its own decides: they belong to the query around it."""

from sqlglot import exp

from pytrickle.plan.query.calls import is_call
from pytrickle.plan.sql.three_valued import conjuncts, truth

APART = ("with_", "group", "having", "distinct", "limit", "offset", "windows", "order")


def pulled_out(node: exp.Exists, aggregates: frozenset[str]) -> tuple[exp.Exists, exp.Expr] | None:
    """EXISTS (X WHERE p AND g) = EXISTS (X WHERE p) AND g IS TRUE, where g holds a subquery and reads nothing of X.

    Left inside, g ties X to all that it reads, and every row around would be paired with every row of X.

    >>> from pytrickle.plan.sql.dialect import parse_query, render
    >>> inner = "SELECT 1 FROM c WHERE c.k = b.k AND NOT EXISTS (SELECT 1 FROM d WHERE d.k = a.k)"
    >>> within, beside = pulled_out(exp.Exists(this=parse_query(inner)), frozenset())
    >>> render(within)
    'EXISTS(SELECT 1 FROM "c" WHERE "c"."k" = "b"."k")'
    >>> render(beside)
    '(NOT EXISTS(SELECT 1 FROM "d" WHERE "d"."k" = "a"."k")) IS TRUE'
    """
    query = node.this
    where = query.args.get("where")
    if not isinstance(query, exp.Select) or where is None or any(query.args.get(clause) for clause in APART):
        return None
    items = (each for item in _items(query) for each in (item, *item.find_all(exp.Table, exp.Subquery, exp.Lateral)))
    own = {each.alias_or_name for each in items}
    every = conjuncts(where.this)
    fixed = [each for each in every if each.find(exp.Query) and not _reads(each, own)]
    kept = [each for each in every if each not in fixed]
    if not (fixed and own) or any(is_call(each, aggregates) for item in query.selects for each in item.walk()):
        # An aggregate has a row whatever the conditions are.
        return None
    result = node.copy()
    result.this.set("where", exp.Where(this=exp.and_(*(each.copy() for each in kept))) if kept else None)
    condition = exp.Paren(this=exp.and_(*(each.copy() for each in fixed)))
    return result, exp.Is(this=condition, expression=truth(True))


def _items(query: exp.Select) -> list[exp.Expr]:
    source = query.args.get("from_")
    return [*([source.this] if source else []), *(join.this for join in query.args.get("joins") or ())]


def _reads(condition: exp.Expr, own: set[str]) -> bool:
    """Whether a condition may read some FROM items: names without a table may be anybody's."""
    return any(not column.table or column.table in own for column in condition.find_all(exp.Column))
