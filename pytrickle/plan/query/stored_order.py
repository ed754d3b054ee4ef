"""Aggregates that take rows as they come: a touched group is recomputed in the order in which its rows are stored.

That is the order in which PostgreSQL itself meets the rows of one table. Rows that are joined are taken in the order of
those of the first table, then of the next. PostgreSQL promises none, so what is stored is never recomputed to be
compared: another order of the same rows would be as right.
"""

from collections.abc import Callable, Iterator

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.construct import ROW
from pytrickle.plan.algebra.relation import Function, Join, Project, Relation, Scan, leaves
from pytrickle.plan.postgres.consolidate import PLACE, TABLE
from pytrickle.plan.query.block import own_column, to_expr
from pytrickle.plan.query.calls import ORDERED, UNORDERED, bare_call, function_name, is_call, is_own
from pytrickle.plan.query.inner_order import refuse_lined_up_input
from pytrickle.plan.query.representative_calls import CHOOSING

WHAT = "an aggregate without ORDER BY"
# What others choose of equal values, such as 1 and 1.00, would be that of the row which comes first.
SETTLED = UNORDERED - CHOOSING
# Above a call these keep every element where it is.
AROUND = (exp.Coalesce, exp.Cast, exp.Paren)
AROUND_BY_NAME = frozenset({
    "coalesce", "array_to_string", "array_to_json", "json_build_object", "jsonb_build_object", "to_json", "to_jsonb",
})  # fmt: skip


def takes_rows_as_stored(select: exp.Select, aggregates: frozenset[str]) -> bool:
    """Whether the select list has an aggregate call that leaves the order of its rows open."""
    return any(is_open(call) for item in select.selects for call in calls_in(item, aggregates))


def calls_in(item: exp.Expr, aggregates: frozenset[str]) -> Iterator[exp.Expr]:
    """List the aggregate calls of an expression, each with all that belongs to it."""

    def ends(node: exp.Expr) -> bool:
        return isinstance(node, exp.Query | exp.Window) or is_call(node, aggregates)

    return (node for node in item.walk(prune=ends) if is_call(node, aggregates))


def refuse_other_shapes(select: exp.Select, aggregates: frozenset[str]) -> None:
    """Refuse what shows more of an open order than another order of the same elements."""
    having = select.args.get("having")
    for call in calls_in(having, aggregates) if having is not None else ():
        _refuse_open(call)
    for item in select.selects:
        if not keeps_elements(item.unalias(), aggregates):
            for call in calls_in(item, aggregates):
                _refuse_open(call)


def refuse_chosen_rows(query: exp.Expr, aggregates: frozenset[str]) -> None:
    """Refuse to choose rows by a value that another order of its elements would change."""
    order = query.args.get("order")
    for call in calls_in(order, aggregates) if order is not None else ():
        _refuse_open(call)


def keeps_elements(item: exp.Expr, aggregates: frozenset[str]) -> bool:
    """Whether an output column shows all that an open call has collected, so that only its order is left open."""
    if is_call(item, aggregates):
        return True
    around = isinstance(item, AROUND) or (isinstance(item, exp.Anonymous) and function_name(item) in AROUND_BY_NAME)
    return (around or not any(map(is_open, calls_in(item, aggregates)))) and all(
        keeps_elements(child, aggregates) for child in item.iter_expressions() if not isinstance(child, exp.DataType)
    )


def as_written(call: exp.Expr, argument: Callable[[exp.Column], exp.Expr]) -> tuple[exp.Expr, exp.Expr]:
    """Write a call that is recomputed over the rows' arguments: as it is, and with the rows in their stored order.

    One that sorts is refused: what ties in its order would come as the rows do.
    """
    name = function_name(bare_call(call))
    written = call.copy().transform(lambda node: argument(node) if isinstance(node, exp.Column) else node)
    if is_open(call):
        return written, _in_stored_order(written)
    settled = name == "count" or (name in SETTLED and not call.find(exp.Distinct))
    if not settled or call.find(exp.Order, exp.WithinGroup):
        raise NotDifferentiable(f"{name}() beside an aggregate without ORDER BY")
    return written, written


def with_places(rows: Relation, select: exp.Select, definition: Definition) -> Relation | None:
    """Add to the rows of a table, or of tables that are joined, where each of them is stored.

    Return None for other rows, such as those of an outer join: they are sorted by their values.
    """
    found = _joined(rows)
    if len(found) != 1:
        _refuse_own_aggregates(select, definition.aggregates)
        refuse_lined_up_input(definition, WHAT)
        if any(isinstance(leaf, Function) for leaf in leaves(rows)):
            raise NotDifferentiable(f"{WHAT} over the rows of a function")
    if not found or not isinstance(rows, Project):
        return None
    stored = [[own_column(leaf.alias, name) for name in ("tableoid", "ctid")] for leaf in found]
    places = stored[0] if len(stored) == 1 else [_row(stored[0]), _row([each for pair in stored[1:] for each in pair])]
    return Project(rows.input, (*rows.columns, *zip((TABLE, PLACE), map(to_expr, places), strict=True)))


def _joined(rows: Relation) -> tuple[Scan, ...]:
    """Return the tables of which the rows are an inner join, in the order of FROM; nothing where they are not."""
    below = rows.input if isinstance(rows, Project) else rows
    inputs = below.inputs if isinstance(below, Join) and not below.negated else (below,)
    found = tuple(each for each in inputs if isinstance(each, Scan))
    return found if len(found) == len(inputs) else ()


def _row(values: list[exp.Column]) -> exp.Expr:
    return exp.Anonymous(this="ROW", expressions=values)


def _refuse_own_aggregates(select: exp.Select, aggregates: frozenset[str]) -> None:
    """Refuse what may make something else than a list of rows that it takes in another order."""
    for name in (function_name(bare_call(call)) for item in select.selects for call in calls_in(item, aggregates)):
        if is_own(name):
            raise NotDifferentiable(f"{name}() without ORDER BY, over other rows than those of one table")


def _in_stored_order(call: exp.Expr) -> exp.Expr:
    result = call.copy()
    bare = bare_call(result)
    if not bare.expressions or isinstance(bare.expressions[0], exp.Star):
        return result
    places = [exp.Ordered(this=own_column(ROW, name), nulls_first=False) for name in (TABLE, PLACE)]
    last = bare.expressions[-1]
    last.replace(exp.Order(this=last.copy(), expressions=places))
    return result


def is_open(call: exp.Expr) -> bool:
    """Whether a call depends on an order of rows that it does not say."""
    bare = bare_call(call)
    if not (is_own(function_name(bare)) or _is_ordered(bare)):
        return False
    return not any(isinstance(inner, exp.Order | exp.Distinct | exp.WithinGroup) for inner in call.walk())


def _is_ordered(bare: exp.Expr) -> bool:
    return isinstance(bare, exp.Anonymous) and function_name(bare) in ORDERED


def _refuse_open(call: exp.Expr) -> None:
    if is_open(call):
        name = function_name(bare_call(call))
        raise NotDifferentiable(f"{name}() without ORDER BY, whose result depends on the order of rows")
