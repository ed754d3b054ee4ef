"""Random subqueries within expressions: EXISTS, IN, quantified comparisons, row comparisons, scalar subqueries."""

from collections.abc import Callable

from tests.equivalence.expressions import condition, value
from tests.equivalence.joins import source
from tests.equivalence.schemas import Column
from tests.equivalence.values import BIGINT, INT, Type
from tests.equivalence.writer import From, Query, Scope, Writer, alike

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def rows_of(writer: Writer, scope: Scope, correlated: float = 0.6) -> From | None:
    """Write what a subquery reads, perhaps with a condition on the outer columns; None where nothing is left."""
    if writer.left <= 0:
        return None
    depth, writer.depth = writer.depth, 1
    found = source(writer, (0, 0, 0, 1))
    writer.depth = depth
    pairs = [(a, b) for a in found.scope for b in scope if alike(a.type, b.type)]
    if not pairs or not writer.chance(correlated):
        return found
    telling = [(a, b) for a, b in pairs if a.type.ambiguous and not (a.type.blurred or b.type.blurred)]
    if telling and writer.chance(0.5):
        return From(found.text, found.scope, (*found.where, _told_apart(writer, *writer.rng.choice(telling))))
    a, b = writer.rng.choice(pairs)
    operator = writer.rng.choice(("=", "=", "=", "=", "IS NOT DISTINCT FROM", "<>", "<", ">="))
    return From(found.text, found.scope, (*found.where, f"{a.name} {operator} {b.name}"))


def _told_apart(writer: Writer, inner: Column, outer: Column) -> str:
    """Compare what values look like, which may differ where they are equal."""
    operator = writer.rng.choice(("=", "<>", "<", ">="))
    # PostgreSQL moves a condition on a partition of a window to its rows, but none with a subquery in it.
    return f"(SELECT format('%s', {inner.name})) COLLATE \"C\" {operator} format('%s', {outer.name}) COLLATE \"C\""


def exists(writer: Writer, scope: Scope) -> str | None:
    """Write EXISTS or NOT EXISTS, over groups now and then."""
    found = rows_of(writer, scope, 0.85)
    if found is None:
        return None
    word = writer.rng.choice(("EXISTS", "EXISTS", "NOT EXISTS"))
    groups = ""
    if writer.chance(0.2):
        groups = f" GROUP BY {writer.rng.choice(found.scope).name} HAVING count(*) > {writer.rng.randint(0, 2)}"
    return f"{word} (SELECT 1{found.sql()}{groups})"


def membership(writer: Writer, scope: Scope) -> str | None:
    """Write [NOT] IN of one column or of two."""
    found = rows_of(writer, scope, 0.3)
    if found is None:
        return None
    pairs = _pairs(writer, found.scope, scope)
    if not pairs:
        return f"EXISTS (SELECT 1{found.sql()})"
    inner, outer = ", ".join(a.name for a, _ in pairs), ", ".join(b.name for _, b in pairs)
    word = writer.rng.choice(("IN", "NOT IN"))
    return f"{f'({outer})' if len(pairs) > 1 else outer} {word} (SELECT {inner}{found.sql()})"


def quantified(writer: Writer, scope: Scope) -> str | None:
    """Write a comparison with ANY or ALL of a subquery."""
    found = rows_of(writer, scope, 0.3)
    if found is None:
        return None
    pairs = _pairs(writer, found.scope, scope)[:1]
    if not pairs:
        return f"NOT EXISTS (SELECT 1{found.sql()})"
    inner, outer = pairs[0]
    word = writer.rng.choice(("ANY", "ALL"))
    return f"{outer.name} {writer.rng.choice(_COMPARISONS)} {word} (SELECT {inner.name}{found.sql()})"


def hidden(writer: Writer, scope: Scope) -> str | None:
    """Write a subquery's predicate where it is no conjunct: under OR, NOT, CASE, a function, or nested in another."""
    first = writer.rng.choice((exists, membership, quantified))(writer, scope)
    if first is None:
        return None
    other = condition(writer, scope, 0)
    return writer.rng.choice(
        (
            f"({first} OR {other})",
            f"NOT ({first})",
            f"CASE WHEN {first} THEN {other} ELSE NOT {other} END",
            f"coalesce({first}, {other})",
            f"({first}) IS NOT TRUE",
            f"(({first}) = ({other}))",
            f"(({first}) IS DISTINCT FROM ({other}))",
        )
    )


def compared(writer: Writer, scope: Scope) -> str | None:
    """Write a comparison with a scalar subquery."""
    outer = writer.rng.choice(scope)
    text = scalar(writer, scope, outer.type)
    return f"{outer.name} {writer.rng.choice(_COMPARISONS)} {text}" if text else None


def rows(writer: Writer, scope: Scope) -> str | None:
    """Write a comparison of rows, or one that sees NULLs."""
    pairs = _pairs(writer, scope, scope)
    if len(pairs) < 2:
        return None
    left, right = (f"({', '.join(pair[side].name for pair in pairs)})" for side in (0, 1))
    operators = (*_COMPARISONS, "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
    return f"{left} {writer.rng.choice(operators)} {right}"


def _pairs(writer: Writer, inner: Scope, outer: Scope) -> list[tuple[Column, Column]]:
    pairs = [(a, b) for a in inner for b in outer if alike(a.type, b.type)]
    return writer.rng.sample(pairs, min(len(pairs), writer.rng.choice((1, 1, 2))))


def scalar(writer: Writer, scope: Scope, type_: Type) -> str | None:
    """Write a scalar subquery, which has one row at most: an aggregate, or the first row in a total order."""
    if type_.ambiguous and not type_.blurred:
        return None
    found = rows_of(writer, scope)
    if found is None:
        return None
    if type_.family == "int" and writer.chance(0.4):
        return f"CAST((SELECT count(*){found.sql()}) AS {type_.name})"
    argument = value(writer, found.scope, type_, 1)
    if type_.ordered and writer.chance(0.6):
        return f"(SELECT {writer.rng.choice(('min', 'max'))}({argument}){found.sql()})"
    return f"(SELECT {argument}{found.sql()} ORDER BY {writer.total_order(found.scope)} LIMIT 1)"


def lateral(writer: Writer, scope: Scope) -> Query | None:
    """Write a LATERAL subquery: rows, or one row of aggregates, or the first of some rows."""
    found = rows_of(writer, scope, 1.0)
    if found is None:
        return None
    shape = writer.rng.choice(("rows", "aggregate", "first"))
    if shape == "aggregate":
        columns = [c for c in found.scope if c.type.ordered]
        calls = [(f"max({c.name})", c.type.chosen()) for c in columns[:1]]
        return writer.select("SELECT", [("count(*)", BIGINT), *calls], found.sql())
    items = [(column.name, column.type) for column in writer.rng.sample(found.scope, min(2, len(found.scope)))]
    if shape == "rows":
        return writer.select("SELECT", items, found.sql())
    order = f" ORDER BY {writer.total_order(found.scope)} LIMIT {writer.rng.randint(1, 2)}"
    return writer.select("SELECT", [(text, each.chosen()) for text, each in items], found.sql() + order)


def _integers(scope: Scope) -> list[str]:
    return [column.name for column in scope if column.type.family == "int"]


def function(writer: Writer, scope: Scope) -> Query | None:
    """Write a function that returns rows, called with what is left of it."""
    arrays = [column.name for column in scope if column.type.family == "ints"]
    integers = _integers(scope)
    choices: list[Callable[[], Query]] = []
    if arrays:
        array = writer.rng.choice(arrays)
        choices.append(lambda: writer.select("SELECT", [("u.v", INT)], f" FROM unnest({array}) AS u (v)"))
        choices.append(
            lambda: writer.select(
                "SELECT", [("u.v", INT), ("u.n", BIGINT)], f" FROM unnest({array}) WITH ORDINALITY AS u (v, n)"
            )
        )
    if integers:
        number = writer.rng.choice(integers)
        series = f" FROM generate_series(1, CAST(least({number}, 3) AS integer)) AS g (v)"
        choices.append(lambda: writer.select("SELECT", [("g.v", INT)], series))
        pair = f" FROM (VALUES (CAST({number} AS bigint)), (1), (NULL)) AS t (v)"
        choices.append(lambda: writer.select("SELECT", [("t.v", BIGINT)], pair))
    return writer.rng.choice(choices)() if choices else None


CONDITIONS: tuple[Callable[[Writer, Scope], str | None], ...] = (
    *(exists, exists, membership, membership, quantified, hidden, hidden, compared, rows),
)
