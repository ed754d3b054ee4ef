"""ORDER BY ... LIMIT at the top of a query: the first rows of a body that is maintained whole."""

from itertools import takewhile

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.query import Top
from pytrickle.plan.query.calls import function_name, is_call
from pytrickle.plan.query.select_clauses import is_distinct_on
from pytrickle.plan.sql.dialect import render, row_order

CLAUSES = ("limit", "offset")


def shown_rows(top: Top, body: str, columns: tuple[str, ...]) -> str:
    """Write the query for the shown rows; what ORDER BY leaves open is settled by the rows' text."""
    settled = top.ordering if top.with_ties else (*top.ordering, row_order(columns))
    order = f" ORDER BY {', '.join(settled)}" if settled else ""
    return f"SELECT {', '.join(columns)} FROM {body}{order} {top.bounds}"


def cut_off(query: exp.Expr, columns: tuple[str, ...], aggregates: frozenset[str]) -> tuple[exp.Expr, Top | None]:
    """Split a query with LIMIT, OFFSET or FETCH into the body below them and its first rows."""
    if not any(query.args.get(clause) for clause in CLAUSES):
        return query, None
    bounds = [query.args[clause].copy() for clause in CLAUSES if query.args.get(clause)]
    if any(bound.find(exp.Column, exp.Query) for bound in bounds):
        raise NotDifferentiable("LIMIT by an expression")
    order = query.args.get("order")
    found = [over_columns(item, query, columns, aggregates) for item in (order.expressions if order else ())]
    items = [item for item in found if item is not None]
    if len(items) < len(found):
        raise NotDifferentiable("ORDER BY ... LIMIT by what the query does not show")
    body = query.copy()
    # DISTINCT ON chooses its rows by that order, too.
    chooses = isinstance(query, exp.Select) and is_distinct_on(query)
    for clause in CLAUSES if chooses else (*CLAUSES, "order"):
        body.set(clause, None)
    text = tuple(render(item) for item in items)
    plain = takewhile(lambda item: isinstance(item.this, exp.Column), items)
    indexed = tuple((item.this.name, render(item)) for item in plain)
    with_ties = any("WITH TIES" in render(bound).upper() for bound in bounds)
    return body, Top(text, " ".join(render(bound).strip() for bound in bounds), with_ties, indexed)


def over_columns(
    item: exp.Expr, query: exp.Expr, columns: tuple[str, ...], aggregates: frozenset[str]
) -> exp.Expr | None:
    """Write an ORDER BY item over output columns, which are given by position or by their own expressions.

    PostgreSQL prints names of output columns for set operations only; a SELECT's are those of what it reads. Return
    None for an item that needs more than the output columns.
    """
    result = item.copy()
    wanted = item.this
    if isinstance(wanted, exp.Literal) and wanted.is_int:
        result.set("this", _named(columns[int(wanted.name) - 1]))
        return result
    if isinstance(query, exp.Select):
        shown: list[exp.Expr] = [each.unalias().unnest() for each in query.selects]
    else:
        shown = [exp.column(column, quoted=quoted) for quoted in (False, True) for column in columns]
    outputs = set[int]()

    def step(node: exp.Expr) -> exp.Expr:
        bare = node.unnest()
        if bare not in shown:
            return node
        output = _named(columns[shown.index(bare) % len(columns)])
        outputs.add(id(output))
        return output

    replaced = wanted.copy().transform(step)
    if any(_needs_more(node, aggregates) for node in replaced.walk() if id(node) not in outputs):
        return None
    result.set("this", replaced)
    return result


def _needs_more(node: exp.Expr, aggregates: frozenset[str]) -> bool:
    """Whether a node is none that can be computed for a row of the output."""
    if isinstance(node, exp.Column | exp.Query | exp.Window) or is_call(node, aggregates):
        return True
    return isinstance(node, exp.Anonymous) and function_name(node) == "grouping"


def _named(column: str) -> exp.Expr:
    return exp.column(column, quoted=True)
