"""Random window functions: ranks, offsets and running aggregates, determined in spite of ties."""

from tests.equivalence.calls import extremum
from tests.equivalence.expressions import outputs
from tests.equivalence.joins import source
from tests.equivalence.selects import grouped
from tests.equivalence.values import BIGINT, FLOAT
from tests.equivalence.writer import Item, Query, Scope, Writer, qualified

_FRAMES = (
    "ROWS UNBOUNDED PRECEDING",
    "ROWS 2 PRECEDING EXCLUDE CURRENT ROW",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW",
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
)


def windowed(writer: Writer) -> Query:
    """Write rows beside window functions, by one partition or by several."""
    found = source(writer)
    own = [(text, each.chosen()) for text, each in outputs(writer, found.scope, 2)]
    calls = [windowed_call(writer, found.scope)]
    if writer.chance(0.5):
        # Of two that tell equal rows apart, nobody says that they do so in the same order.
        calls.append(writer.rng.choice((_rank, _whole))(writer, found.scope))
    return writer.select("SELECT", [*own, *calls], found.sql())


def windowed_groups(writer: Writer) -> Query:
    """Write window functions over groups."""
    inner, alias = grouped(writer), writer.alias()
    scope = qualified(alias, inner.columns)
    own = [(column.name, column.type.chosen()) for column in scope[:2]]
    return writer.select("SELECT", [*own, windowed_call(writer, scope)], f" FROM ({inner.sql}) AS {alias}")


def best(writer: Writer) -> Query:
    """Keep the first rows of every partition, by a filter on row_number or rank."""
    found, alias = source(writer), writer.alias()
    items = [(column.name, column.type.chosen()) for column in found.scope[:3]]
    over = f"({partition(writer, found.scope)}ORDER BY {writer.total_order(found.scope)})"
    function = writer.rng.choice(("row_number()", "rank()"))
    inner = writer.select("SELECT", items, "")
    text = f"{inner.sql}, {function} OVER {over} AS place{found.sql()}"
    listed = ", ".join(f"{alias}.{column.name}" for column in inner.columns)
    return Query(f"SELECT {listed} FROM ({text}) AS {alias} WHERE {alias}.place <= 2", inner.columns)


def partition(writer: Writer, scope: Scope) -> str:
    """Write PARTITION BY, mostly."""
    if writer.chance(0.15):
        return ""
    keys = writer.rng.sample(scope, min(len(scope), writer.rng.choice((1, 1, 2))))
    return f"PARTITION BY {', '.join(column.name for column in keys)} "


def windowed_call(writer: Writer, scope: Scope) -> Item:
    """Write one window function; those that tell ties apart order by all columns."""
    shape = writer.rng.choice((_rank, _place, _offset, _running, _running, _whole))
    text, type_ = shape(writer, scope)
    if writer.chance(0.1) and type_ is BIGINT:
        return f"(({text}) * 2)", BIGINT
    return text, type_


def _rank(writer: Writer, scope: Scope) -> Item:
    order = writer.ordered(writer.rng.choice(scope).name)
    function, type_ = writer.rng.choice(
        (("rank()", BIGINT), ("dense_rank()", BIGINT), ("percent_rank()", FLOAT), ("cume_dist()", FLOAT))
    )
    return f"{function} OVER ({partition(writer, scope)}ORDER BY {order})", type_


def _place(writer: Writer, scope: Scope) -> Item:
    function = writer.rng.choice(("row_number()", "CAST(ntile(2)"))
    over = f"OVER ({partition(writer, scope)}ORDER BY {writer.total_order(scope)})"
    return f"{function} {over}{' AS bigint)' if 'CAST' in function else ''}", BIGINT


def _offset(writer: Writer, scope: Scope) -> Item:
    column = writer.rng.choice(scope)
    call = writer.rng.choice(("lag({})", "lead({})", "first_value({})", "last_value({})", "nth_value({}, 2)"))
    over = f"{partition(writer, scope)}ORDER BY {writer.total_order(scope)}"
    if "value" in call:
        over += f" {writer.rng.choice(_FRAMES[:4])}"
    return f"{call.format(column.name)} OVER ({over})", column.type.chosen()


def _running(writer: Writer, scope: Scope) -> Item:
    text, type_ = extremum(writer, scope)
    frame = writer.rng.choice(_FRAMES)
    over = f"{partition(writer, scope)}ORDER BY {writer.total_order(scope)} {frame}"
    return f"{text} OVER ({over})", type_.chosen()


def _whole(writer: Writer, scope: Scope) -> Item:
    text, type_ = extremum(writer, scope)
    order = f"ORDER BY {writer.ordered(writer.rng.choice(scope).name)}" if writer.chance(0.4) else ""
    return f"{text} OVER ({partition(writer, scope)}{order})", type_
