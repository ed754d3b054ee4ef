"""Operations that choose rows: DISTINCT ON, set operations, and the one row of a scalar subquery."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.postgres.consolidate import image
from pytrickle.plan.query.block import Block, own_column
from pytrickle.plan.query.decorrelate import Decorrelated
from pytrickle.plan.query.derive import derive
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.inner_order import refuse_sorted_input
from pytrickle.plan.query.nested_grouping import refuse_ties
from pytrickle.plan.query.operation import ROW, Form, Rows, columns_of, text
from pytrickle.plan.query.scope import Names, resolve
from pytrickle.plan.sql.dialect import render

Blocks = tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Bounds:
    """LIMIT (None: no limit), OFFSET, and whether ties with the last row are shown too."""

    limit: int | None
    offset: int
    with_ties: bool

    @classmethod
    def of(cls, query: exp.Expr) -> Bounds:
        """Read the bounds of a query."""
        fetch = query.args.get("fetch")
        ties = fetch is not None and "WITH TIES" in render(fetch).upper()
        limit = fetch.args.get("count") if fetch is not None else _value(query.args.get("limit"))
        offset = _number(_value(query.args.get("offset")))
        return cls(_number(limit), offset or 0, ties)


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


def distinct_on(facts: Facts, blocks: Blocks, items: Items, select: exp.Select, outer: Names) -> Block:
    """Keep the first row, in the query's order, for every value of the ON expressions."""
    on = select.args["distinct"].args["on"].unnest()
    keys = list(on.expressions) if isinstance(on, exp.Tuple) else [on]
    order = select.args.get("order")
    orders: list[exp.Expr] = list(order.expressions) if order else []
    if not orders:
        refuse_sorted_input(facts.definition, "DISTINCT ON without ORDER BY")
    names = tuple([f"k{i}" for i in range(len(keys))])
    sorts = tuple(f"o{i}" for i in range(len(orders)))
    shown = tuple(f"a{i}" for i in range(len(items)))
    asked = [*keys, *(each.this for each in orders), *(item for _, item in items)]
    rows: Rows = tuple((block, tuple(resolve(each, block.names, outer) for each in asked)) for block in blocks)
    refuse_ties(rows, "DISTINCT ON")
    ordering = [f"{ROW}.{name}" for name in names] + [
        _sorted_by(each, name) for each, name in zip(orders, sorts, strict=True)
    ]
    first = f"SELECT DISTINCT ON ({', '.join(f'{ROW}.{name}' for name in names)}) "
    arguments = (*names, *sorts, *shown)
    tail = f"AS {ROW} ORDER BY {', '.join([*ordering, image(arguments)])}"
    head = f"{first}{', '.join(f'{ROW}.{name}' for name in shown)} FROM"
    entries = tuple(f"a{i}" for i, (_, item) in enumerate(items) if item in keys)
    form = Form("distinct on", head, tail, shown, entries=entries, tied=True, moved=entries)
    leaf = derive(facts, rows, arguments, names, form)
    columns = columns_of(leaf)
    return Block((leaf,), (), {"": {name: columns[f"a{i}"] for i, (name, _) in enumerate(items)}})


VALUE = "\x00value"
COUNTS = tuple(f"count(*) FILTER (WHERE {ROW}.side = {side})" for side in (0, 1))


def set_operation(facts: Facts, query: exp.SetOperation, arms: tuple[Rows, Rows], names: tuple[str, ...]) -> Block:
    """Combine the arms of UNION, INTERSECT or EXCEPT by how often each has a row."""
    keys = tuple(f"k{i}" for i in range(len(names)))
    rows: Rows = tuple(
        (block, (*columns, exp.Literal.number(side))) for side, arm in enumerate(arms) for block, columns in arm
    )
    refuse_ties(rows, query.key.upper())
    listed = ", ".join(f"{ROW}.{key}" for key in keys)
    left, right = COUNTS
    group = f"AS {ROW} GROUP BY {listed}"
    match query, bool(query.args.get("distinct")):
        case exp.Union(), True:
            head, tail = f"SELECT {listed} FROM", group
        case exp.Intersect(), True:
            head, tail = f"SELECT {listed} FROM", f"{group} HAVING {left} > 0 AND {right} > 0"
        case exp.Except(), True:
            head, tail = f"SELECT {listed} FROM", f"{group} HAVING {left} > 0 AND {right} = 0"
        case exp.Intersect(), False:
            head, tail = _counted(keys, f"least({left}, {right})", group)
        case exp.Except(), False:
            head, tail = _counted(keys, f"{left} - {right}", group)
        case _:
            raise NotDifferentiable(query.key.upper())
    name = query.key if query.args.get("distinct") else f"{query.key} all"
    leaf = derive(facts, rows, (*keys, "side"), keys, Form(name, head, tail, keys, chosen=keys))
    columns = columns_of(leaf)
    return Block((leaf,), (), {"": dict(zip(names, (columns[key] for key in keys), strict=True))})


def single(facts: Facts, loose: tuple[Decorrelated, ...]) -> tuple[Block, exp.Expr]:
    """Build the one row of a scalar subquery for every key; more than one is an error where the value is used.

    Return the block to join, and the value.
    """
    keys = tuple(f"k{i}" for i in range(len(loose[0].pairs)))
    rows: Rows = tuple(
        (each.block, (*(inner for _, inner in each.pairs), each.block.names[VALUE]["v"].copy())) for each in loose
    )
    refuse_ties(rows, "a scalar subquery")
    listed = [f"{ROW}.{key}" for key in keys]
    partition = f"PARTITION BY {', '.join(listed)}" if keys else ""
    on = f"DISTINCT ON ({', '.join(listed)}) " if keys else ""
    arguments = (*keys, "v")
    head = f"SELECT {on}{', '.join([*listed, f'{ROW}.v', f'count(*) OVER ({partition}) AS n'])} FROM"
    tail = f"AS {ROW} ORDER BY {', '.join([*listed, image(arguments)])}{'' if keys else ' LIMIT 1'}"
    leaf = derive(facts, rows, arguments, keys, Form("scalar", head, tail, (*keys, "v", "n")))
    checked = exp.Anonymous(this="only_one", expressions=[own_column(leaf.alias, "v"), own_column(leaf.alias, "n")])
    called = exp.Dot(this=exp.to_identifier("pgtrickle"), expression=checked)
    return Block((leaf,), loose[0].ties(leaf.alias), {}), called


def first_rows(
    facts: Facts, loose: tuple[Decorrelated, ...], items: Items, orders: list[exp.Expr], bounds: Bounds
) -> Block:
    """Keep the first rows for every key that ties them to the rows around; `items` begin with what sorts them."""
    keys = tuple(f"k{i}" for i in range(len(loose[0].pairs)))
    sorts = tuple(f"o{i}" for i in range(len(orders)))
    shown = tuple(f"a{i}" for i in range(len(items) - len(orders)))
    arguments = (*keys, *sorts, *shown)
    rows: Rows = tuple(
        (each.block, (*(inner for _, inner in each.pairs), *(each.block.names[""][name].copy() for name, _ in items)))
        for each in loose
    )
    refuse_ties(rows, "LIMIT")
    partition = f"PARTITION BY {', '.join(f'{ROW}.{key}' for key in keys)} " if keys else ""
    order = [_sorted_by(each, name) for each, name in zip(orders, sorts, strict=True)]
    place = "rank()" if bounds.with_ties else "row_number()"
    settled = order if bounds.with_ties else [*order, image(tuple(f"{ROW}.{name}" for name in arguments))]
    number = f"{place} OVER ({partition}ORDER BY {', '.join(settled)}) AS pgt_place"
    columns = (*keys, *shown)
    head = f"SELECT {', '.join(f'e.{name}' for name in columns)} FROM (SELECT {ROW}.*, {number} FROM"
    last = f" AND e.pgt_place <= {bounds.offset + bounds.limit}" if bounds.limit is not None else ""
    tail = f"AS {ROW}) AS e WHERE e.pgt_place > {bounds.offset}{last}"
    leaf = derive(facts, rows, arguments, keys, Form("limit", head, tail, columns, tied=True))
    found = columns_of(leaf)
    names = {name: found[f"a{i}"] for i, (name, _) in enumerate(items[len(orders) :])}
    return Block((leaf,), loose[0].ties(leaf.alias), {"": names})


def _sorted_by(order: exp.Expr, name: str) -> str:
    written = order.copy()
    written.set("this", own_column(ROW, name))
    return text(written)


def _counted(keys: tuple[str, ...], count: str, group: str) -> tuple[str, str]:
    listed = ", ".join(f"{ROW}.{key}" for key in keys)
    shown = ", ".join(f"g.{key}" for key in keys)
    return (
        f"SELECT {shown} FROM (SELECT {listed}, {count} AS n FROM",
        f"{group}) AS g, generate_series(1, g.n) AS e (pgt_n)",
    )
