"""Operations that choose rows: DISTINCT ON, set operations, and the one row of a scalar subquery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.aggregation import refuse_ties
from pytrickle.plan.block import Block, own_column
from pytrickle.plan.correlate import Loose
from pytrickle.plan.operation import ROW, Form, Rows, columns_of, derive, text
from pytrickle.plan.scope import Names, resolve
from pytrickle.plan.zset import image

if TYPE_CHECKING:
    from pytrickle.plan.reader import Reader

Blocks = tuple[Block, ...]
Items = list[tuple[str, exp.Expr]]


def distinct_on(reader: Reader, blocks: Blocks, items: Items, select: exp.Select, outer: Names) -> Block:
    """Keep the first row, in the query's order, for every value of the ON expressions."""
    on = select.args["distinct"].args["on"].unnest()
    keys = list(on.expressions) if isinstance(on, exp.Tuple) else [on]
    order = select.args.get("order")
    orders: list[exp.Expr] = list(order.expressions) if order else []
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
    leaf = derive(reader, rows, arguments, names, Form("distinct on", head, tail, shown))
    columns = columns_of(leaf)
    return Block((leaf,), (), {"": {name: columns[f"a{i}"] for i, (name, _) in enumerate(items)}})


VALUE = "\x00value"
COUNTS = tuple(f"count(*) FILTER (WHERE {ROW}.side = {side})" for side in (0, 1))


def set_operation(reader: Reader, query: exp.SetOperation, arms: tuple[Rows, Rows], names: tuple[str, ...]) -> Block:
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
    leaf = derive(reader, rows, (*keys, "side"), keys, Form(query.key, head, tail, keys))
    columns = columns_of(leaf)
    return Block((leaf,), (), {"": dict(zip(names, (columns[key] for key in keys), strict=True))})


def single(reader: Reader, loose: tuple[Loose, ...], first: list[exp.Expr] | None) -> tuple[Block, exp.Expr]:
    """Build the one row of a scalar subquery for every key; more than one is an error where the value is used.

    With `first`, the query's ORDER BY under LIMIT 1, it is the first one. Return the block to join, and the value.
    """
    keys = tuple(f"k{i}" for i in range(len(loose[0].pairs)))
    orders = first or []
    sorts = tuple(f"o{i}" for i in range(len(orders)))
    rows: Rows = tuple((each.block, _single_columns(each, orders)) for each in loose)
    refuse_ties(rows, "a scalar subquery")
    listed = [f"{ROW}.{key}" for key in keys]
    partition = f"PARTITION BY {', '.join(listed)}" if keys else ""
    on = f"DISTINCT ON ({', '.join(listed)}) " if keys else ""
    count = "1" if first is not None else f"count(*) OVER ({partition})"
    head = f"SELECT {on}{', '.join([*listed, f'{ROW}.v AS v', f'CAST({count} AS bigint) AS n'])} FROM"
    arguments = (*keys, *sorts, "v")
    order = [*listed, *(_sorted_by(each, name) for each, name in zip(orders, sorts, strict=True)), image(arguments)]
    tail = f"AS {ROW} ORDER BY {', '.join(order)}{'' if keys else ' LIMIT 1'}"
    leaf = derive(reader, rows, arguments, keys, Form("scalar", head, tail, (*keys, "v", "n")))
    equal = [
        exp.EQ(this=pair[0].copy(), expression=own_column(leaf.alias, f"k{i}")) for i, pair in enumerate(loose[0].pairs)
    ]
    checked = exp.Anonymous(this="only_one", expressions=[own_column(leaf.alias, "v"), own_column(leaf.alias, "n")])
    read = (
        own_column(leaf.alias, "v")
        if first is not None
        else exp.Dot(this=exp.to_identifier("pgtrickle"), expression=checked)
    )
    return Block((leaf,), (*loose[0].guards, *equal), {}), read


def _single_columns(loose: Loose, orders: list[exp.Expr]) -> tuple[exp.Expr, ...]:
    names = loose.block.names
    sorts = tuple(resolve(each.this, names) for each in orders)
    return (*(inner for _, inner in loose.pairs), *sorts, names[VALUE]["v"].copy())


def _sorted_by(order: exp.Expr, name: str) -> str:
    written = order.copy()
    written.set("this", own_column(ROW, name))
    return text(written)


def _counted(keys: tuple[str, ...], count: str, group: str) -> tuple[str, str]:
    listed = ", ".join(f"{ROW}.{key}" for key in keys)
    shown = ", ".join(f"g.{key}" for key in keys)
    return f"SELECT {shown} FROM (SELECT {listed}, {count} AS n FROM", f"{group}) AS g, generate_series(1, g.n)"
