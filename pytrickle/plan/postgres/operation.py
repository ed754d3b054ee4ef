"""Operations as PostgreSQL text around their rows, one way of writing for each construct."""

from functools import singledispatch

from pytrickle.plan.algebra.construct import (
    ROW,
    Construct,
    Distinct,
    DistinctOn,
    Domain,
    Exists,
    FirstRows,
    Group,
    Names,
    SetOperation,
    Single,
    Window,
)
from pytrickle.plan.algebra.relation import Operation
from pytrickle.plan.postgres.consolidate import row_text

COUNTS = tuple(f"count(*) FILTER (WHERE {ROW}.side = {side})" for side in (0, 1))
# How often a row is shown that the left side has so often, and the right side so often.
TIMES = {"intersect": f"least({COUNTS[0]}, {COUNTS[1]})", "except": f"{COUNTS[0]} - {COUNTS[1]}"}
SHOWN = {
    "union": "",
    "intersect": f" HAVING {COUNTS[0]} > 0 AND {COUNTS[1]} > 0",
    "except": f" HAVING {COUNTS[0]} > 0 AND {COUNTS[1]} = 0",
}


def result(operation: Operation, rows: str) -> str:
    """Apply an operation to rows of its arguments."""
    if operation.depends_on_order:
        first = [*operation.keys, *operation.construct.ordering, row_text(operation.arguments)]
        rows = f"SELECT * FROM (\n{rows}\n) AS d ORDER BY {', '.join(first)}"
    head, tail = around(operation.construct, operation.arguments, operation.keys)
    return f"{head} (\n{rows}\n) {tail}"


@singledispatch
def around(construct: Construct, arguments: Names, keys: Names) -> tuple[str, str]:
    """Write what stands before and behind the rows of a construct."""
    raise TypeError(f"a {type(construct).__name__} is no text around rows")


@around.register
def _(construct: Distinct | Domain, arguments: Names, keys: Names) -> tuple[str, str]:
    return f"SELECT DISTINCT {_listed(keys)} FROM", f"AS {ROW}"


@around.register
def _(construct: Exists, arguments: Names, keys: Names) -> tuple[str, str]:
    if keys:
        return f"SELECT DISTINCT {_listed(keys)} FROM", f"AS {ROW}"
    return "SELECT 1 AS one FROM", f"AS {ROW} LIMIT 1"


@around.register
def _(construct: Group, arguments: Names, keys: Names) -> tuple[str, str]:
    calls = [f"{call} AS c{i}" for i, call in enumerate(construct.calls)]
    items = ", ".join([*_prefixed(keys), *calls]) or "1 AS one"
    # Without keys there is one group, even over no rows, and even where no call asks for it.
    return f"SELECT {items} FROM", f"AS {ROW} GROUP BY {_listed(keys) or '()'}"


@around.register
def _(construct: Window, arguments: Names, keys: Names) -> tuple[str, str]:
    functions = [f"{function} AS w{i}" for i, function in enumerate(construct.functions)]
    return f"SELECT {', '.join([*_prefixed(arguments[len(keys) :]), *functions])} FROM", f"AS {ROW}"


@around.register
def _(construct: SetOperation, arguments: Names, keys: Names) -> tuple[str, str]:
    group = f"AS {ROW} GROUP BY {_listed(keys)}"
    if construct.distinct:
        return f"SELECT {_listed(keys)} FROM", f"{group}{SHOWN[construct.operator]}"
    shown = ", ".join(f"g.{key}" for key in keys)
    inner = f"SELECT {_listed(keys)}, {TIMES[construct.operator]} AS n FROM"
    return f"SELECT {shown} FROM ({inner}", f"{group}) AS g, generate_series(1, g.n) AS e (pgt_n)"


@around.register
def _(construct: DistinctOn, arguments: Names, keys: Names) -> tuple[str, str]:
    order = ", ".join([*_prefixed(keys), *construct.order, row_text(arguments)])
    return f"SELECT DISTINCT ON ({_listed(keys)}) {_listed(construct.shown)} FROM", f"AS {ROW} ORDER BY {order}"


@around.register
def _(construct: FirstRows, arguments: Names, keys: Names) -> tuple[str, str]:
    place = "rank()" if construct.with_ties else "row_number()"
    partition = f"PARTITION BY {_listed(keys)} " if keys else ""
    order = construct.order if construct.with_ties else (*construct.order, row_text(_prefixed(arguments)))
    number = f"{place} OVER ({partition}ORDER BY {', '.join(order)}) AS pgt_place"
    shown = ", ".join(f"e.{name}" for name in (*keys, *construct.shown))
    last = f" AND e.pgt_place <= {construct.offset + construct.limit}" if construct.limit is not None else ""
    head = f"SELECT {shown} FROM (SELECT {ROW}.*, {number} FROM"
    return head, f"AS {ROW}) AS e WHERE e.pgt_place > {construct.offset}{last}"


@around.register
def _(construct: Single, arguments: Names, keys: Names) -> tuple[str, str]:
    partition = f"PARTITION BY {_listed(keys)}" if keys else ""
    on = f"DISTINCT ON ({_listed(keys)}) " if keys else ""
    items = ", ".join([*_prefixed(arguments), f"count(*) OVER ({partition}) AS n"])
    order = ", ".join([*_prefixed(keys), row_text(arguments)])
    return f"SELECT {on}{items} FROM", f"AS {ROW} ORDER BY {order}{'' if keys else ' LIMIT 1'}"


def _prefixed(names: Names) -> Names:
    return tuple(f"{ROW}.{name}" for name in names)


def _listed(names: Names) -> str:
    return ", ".join(_prefixed(names))
