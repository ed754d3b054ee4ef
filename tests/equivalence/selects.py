"""Random queries of the kinds that the core grammar has: plain, grouped, distinct, united, with a CTE."""

from dataclasses import replace

from tests.equivalence.calls import call, extremum
from tests.equivalence.expressions import outputs, value
from tests.equivalence.joins import source
from tests.equivalence.schemas import Column, Table
from tests.equivalence.values import Type, quote
from tests.equivalence.writer import WIDEST, Item, Query, Scope, Writer, chosen


def plain(writer: Writer) -> Query:
    found = source(writer)
    return writer.select("SELECT", outputs(writer, found.scope), found.sql())


def distinct(writer: Writer) -> Query:
    found = source(writer)
    return chosen(writer.select("SELECT DISTINCT", outputs(writer, found.scope), found.sql()))


def ungrouped(writer: Writer) -> Query:
    found = source(writer)
    calls = [call(writer, found.scope) for _ in range(writer.rng.randint(1, 4))]
    having = " HAVING count(*) > 1" if writer.chance(0.2) else ""
    return writer.select("SELECT", calls, found.sql() + having)


def grouped(writer: Writer) -> Query:
    found = source(writer)
    keys = [_key(writer, found.scope) for _ in range(writer.rng.randint(1, 3))]
    items = [
        *((text, each.chosen()) for text, each in keys),
        *(call(writer, found.scope) for _ in range(writer.rng.randint(0, 3))),
    ]
    writer.rng.shuffle(items)
    rest = f"{found.sql()} GROUP BY {', '.join(text for text, _ in keys)}"
    return writer.select("SELECT", items, rest + having(writer, found.scope))


def having(writer: Writer, scope: Scope) -> str:
    """Write a HAVING clause, or none."""
    if writer.chance(0.7):
        return ""
    text, result = extremum(writer, scope)
    tests = ["count(*) > 1", f"{text} IS NOT NULL"]
    if result.family in {"int", "numeric"}:
        tests.append(f"{text} > 0")
    return f" HAVING {writer.rng.choice(tests)}"


def _key(writer: Writer, scope: Scope) -> Item:
    found = writer.rng.choice(scope)
    if found.type.family in {"int", "text"} and writer.chance(0.3):
        return f"coalesce({found.name}, {writer.literal(found.type)})", found.type
    return found.name, found.type


def union_all(writer: Writer) -> Query:
    types = writer.types()
    return united([arm(writer, types), arm(writer, types)], [" UNION ALL "], types)


def union(writer: Writer) -> Query:
    """Combine queries whose columns have equal types."""
    types = writer.types()
    arms = [arm(writer, types) for _ in range(writer.rng.randint(2, 3))]
    operators = [" UNION ALL "] * (len(arms) - 1)
    if writer.chance(0.35):
        operators[-1] = " UNION "
    return united(arms, operators, types)


def united(arms: list[str], operators: list[str], types: list[Type]) -> Query:
    """Write arms with operators between them."""
    text = arms[0] + "".join(operator + each for operator, each in zip(operators, arms[1:], strict=True))
    query = Query(text, tuple(Column(quote(f"u{i}"), each) for i, each in enumerate(types)))
    return query if set(operators) <= {" UNION ALL "} else chosen(query)


def arm(writer: Writer, types: list[Type]) -> str:
    """Write a query with columns of the given types, in parentheses."""
    found = source(writer, (0, 0, 1))
    items = ", ".join(f"{value(writer, found.scope, each)} AS {quote(f'u{i}')}" for i, each in enumerate(types))
    return f"(SELECT {items}{found.sql()})"


def with_clause(writer: Writer) -> Query:
    """Name a derived query in a WITH clause and read it, perhaps twice."""
    inner, name = writer.derived(), f"cte{next(writer.names)}"
    table = Table(name, inner.columns, width=max(1, WIDEST - writer.left))
    outer = Writer(writer.rng, (table, table, *writer.tables[:1]), writer.grammar, writer.names, crossed=True)
    query = writer.rng.choice((plain, grouped))(outer)
    hint = writer.rng.choice(("", "", "MATERIALIZED ", "NOT MATERIALIZED ")) if writer.grammar.conditions else ""
    return replace(query, sql=f"WITH {name} AS {hint}({inner.sql}) {query.sql}")
