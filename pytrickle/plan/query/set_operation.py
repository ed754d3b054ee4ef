"""Operations that choose rows: DISTINCT ON, set operations, and the one row of a scalar subquery."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.construct import ROW
from pytrickle.plan.algebra.constructs.distinct_on import DistinctOn
from pytrickle.plan.algebra.constructs.first_rows import FirstRows
from pytrickle.plan.algebra.constructs.set_operation import SetOperation
from pytrickle.plan.algebra.constructs.single import Single
from pytrickle.plan.algebra.relation import Derived
from pytrickle.plan.query.block import Block, own_column
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.decorrelate import Decorrelated, separate
from pytrickle.plan.query.derive import derive
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.inner_order import refuse_sorted_input
from pytrickle.plan.query.operation import Rows, columns_of, refuse_correlation, text
from pytrickle.plan.query.scope import resolve
from pytrickle.plan.query.shown_values import keys_with_least

Blocks = tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Bounds:
    """LIMIT (None: no limit), OFFSET, and whether ties with the last row are shown too."""

    limit: int | None
    offset: int
    with_ties: bool

    @classmethod
    def of(cls, query: exp.Expr) -> Bounds:
        """Read the bounds of a query. PostgreSQL prints FETCH only WITH TIES; what it counts stands in parentheses."""
        limit, offset = query.args.get("limit"), _number(_value(query.args.get("offset"))) or 0
        if not isinstance(limit, exp.Fetch):
            return cls(_number(_value(limit)), offset, False)
        counted = _number(limit.args.get("count"))
        if counted is None:
            raise NotDifferentiable("FETCH without a number of rows")
        return cls(counted, offset, True)


def _value(clause: exp.Expr | None) -> exp.Expr | None:
    found: exp.Expr | None = clause.expression if clause is not None else None
    return found


def _number(node: exp.Expr | None) -> int | None:
    if node is None or isinstance(node.unnest(), exp.Null) or is_all(node):
        return None
    bare = node.unnest()
    while isinstance(bare, exp.Cast):
        bare = bare.this.unnest()
    if not (isinstance(bare, exp.Literal) and str(bare.this).isdecimal()):
        raise NotDifferentiable("LIMIT by an expression")
    return int(bare.this)


def is_all(node: exp.Expr) -> bool:
    """Whether LIMIT says ALL, which is no limit."""
    return isinstance(node, exp.Var) and node.name.upper() == "ALL"


Items = list[tuple[str, exp.Expr]]


def distinct_on(facts: Facts, blocks: Blocks, items: Items, select: exp.Select, context: Context) -> Block:
    """Keep the first row, in the query's order, for every value of the ON expressions, for each row around."""
    on = select.args["distinct"].args["on"].unnest()
    keys = list(on.expressions) if isinstance(on, exp.Tuple) else [on]
    order = select.args.get("order")
    orders: list[exp.Expr] = list(order.expressions) if order else []
    if not orders:
        refuse_sorted_input(facts.definition, "DISTINCT ON without ORDER BY")
    sorts = tuple(f"o{i}" for i in range(len(orders)))
    shown = tuple(f"a{i}" for i in range(len(items)))
    asked = [*keys, *(each.this for each in orders), *(item for _, item in items)]
    read: Rows = tuple((block, tuple(resolve(each, block.names, context.outer) for each in asked)) for block in blocks)
    found = separate(facts, context.block, read, "DISTINCT ON")
    first = len(keys)
    ties = tuple(f"k{i}" for i in range(first, first + len(found[0].pairs)))
    names = (*(f"k{i}" for i in range(first)), *ties)
    rows: Rows = tuple((each.block, (*each.shown[:first], *each.inner, *each.shown[first:])) for each in found)
    refuse_correlation(rows, "DISTINCT ON")
    sorted_by = tuple(_sorted_by(each, name) for each, name in zip(orders, sorts, strict=True))
    entries = tuple(f"a{i}" for i, (_, item) in enumerate(items) if item in keys)
    construct = DistinctOn((*shown, *ties), sorted_by, (*entries, *ties))
    leaf = derive(facts, rows, (*names, *sorts, *shown), names, construct)
    columns = columns_of(leaf)
    given = {name: columns[f"a{i}"] for i, (name, _) in enumerate(items)}
    return Block((leaf,), found[0].ties(leaf.alias, first), {"": given})


VALUE = "\x00value"


def set_operation(
    facts: Facts, query: exp.SetOperation, arms: tuple[Rows, Rows], names: tuple[str, ...], outer: Block | None
) -> Block:
    """Combine the arms of UNION, INTERSECT or EXCEPT by how often each has a row, for each row around them."""
    what = query.key.upper()
    sides = [exp.Literal.number(side) for side, arm in enumerate(arms) for _ in arm]
    found = separate(facts, outer, (*arms[0], *arms[1]), what)
    keys = tuple(f"k{i}" for i in range(len(names) + len(found[0].pairs)))
    rows: Rows = tuple((each.block, (*each.shown, *each.inner, side)) for each, side in zip(found, sides, strict=True))
    refuse_correlation(rows, what)
    construct = _construct(query)
    leaf = derive(facts, rows, (*keys, "side"), keys, construct)
    if left := _shown_of_the_left(facts, construct, leaf, keys):
        leaf = derive(facts, rows, (*keys, "side"), keys, replace(construct, left=left))
    columns = columns_of(leaf)
    given = dict(zip(names, (columns[key] for key in keys), strict=False))
    return Block((leaf,), found[0].ties(leaf.alias, len(names)), {"": given})


def _shown_of_the_left(
    facts: Facts, construct: SetOperation, leaf: Derived, keys: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Return keys, with their types, of which equal values look different: PostgreSQL 18 shows the left side's."""
    if construct.operator == "union" or (construct.operator == "except" and construct.distinct):
        return ()
    rows = leaf.operation.input
    types = dict(zip(keys, facts.types_of(rows), strict=False))
    return tuple((key, types[key]) for key in keys_with_least(facts, rows, keys))


def single(facts: Facts, decorrelated: tuple[Decorrelated, ...], sure: bool) -> tuple[Block, list[exp.Expr]]:
    """Build the one row of a scalar subquery for every key; more than one is an error where its columns are used.

    Return the block to join, and the columns, which are those of VALUE. It may be `sure` that there are no more.
    """
    keys = tuple(f"k{i}" for i in range(len(decorrelated[0].pairs)))
    shown = tuple(decorrelated[0].block.names[VALUE])
    rows: Rows = tuple(
        (
            each.block,
            (*each.inner, *(each.block.names[VALUE][name].copy() for name in shown)),
        )
        for each in decorrelated
    )
    refuse_correlation(rows, "a scalar subquery")
    leaf = derive(facts, rows, (*keys, *shown), keys, Single())
    column = own_column if sure else _checked
    return Block((leaf,), decorrelated[0].ties(leaf.alias), {}), [column(leaf.alias, name) for name in shown]


def _checked(alias: str, column: str) -> exp.Expr:
    called = exp.Anonymous(this="only_one", expressions=[own_column(alias, column), own_column(alias, "n")])
    return exp.Dot(this=exp.to_identifier("pgtrickle_private"), expression=called)


def first_rows(
    facts: Facts,
    decorrelated: tuple[Decorrelated, ...],
    items: Items,
    orders: list[exp.Expr],
    bounds: Bounds,
    total: bool = False,
) -> Block:
    """Keep the first rows for every key that ties them to the rows around; `items` begin with what sorts them.

    The order may be `total`: then no rows tie.
    """
    keys = tuple(f"k{i}" for i in range(len(decorrelated[0].pairs)))
    sorts = tuple(f"o{i}" for i in range(len(orders)))
    shown = tuple(f"a{i}" for i in range(len(items) - len(orders)))
    rows: Rows = tuple(
        (each.block, (*each.inner, *(each.block.names[""][name].copy() for name, _ in items))) for each in decorrelated
    )
    refuse_correlation(rows, "LIMIT")
    order = tuple(_sorted_by(each, name) for each, name in zip(orders, sorts, strict=True))
    construct = FirstRows(shown, order, bounds.limit, bounds.offset, bounds.with_ties, total)
    leaf = derive(facts, rows, (*keys, *sorts, *shown), keys, construct)
    found = columns_of(leaf)
    names = {name: found[f"a{i}"] for i, (name, _) in enumerate(items[len(orders) :])}
    return Block((leaf,), decorrelated[0].ties(leaf.alias), {"": names})


def _sorted_by(order: exp.Expr, name: str) -> str:
    written = order.copy()
    written.set("this", own_column(ROW, name))
    return text(written)


def _construct(query: exp.SetOperation) -> SetOperation:
    distinct = bool(query.args.get("distinct"))
    match query:
        case exp.Union() if distinct:
            return SetOperation("union", True)
        case exp.Intersect():
            return SetOperation("intersect", distinct)
        case exp.Except():
            return SetOperation("except", distinct)
        case _:
            raise NotDifferentiable(query.key.upper())
