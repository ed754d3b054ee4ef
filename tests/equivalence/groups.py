"""Random aggregations beyond one grouping: grouping sets, subqueries in HAVING, groups of groups, recursion."""

from dataclasses import replace

from tests.equivalence.calls import call
from tests.equivalence.expressions import condition
from tests.equivalence.joins import source
from tests.equivalence.schemas import Column
from tests.equivalence.selects import grouped
from tests.equivalence.values import INT
from tests.equivalence.writer import Query, Scope, Writer, alike, qualified


def grouping_sets(writer: Writer) -> Query:
    """Group by ROLLUP, CUBE or GROUPING SETS, and show which."""
    found = source(writer)
    keys = writer.rng.sample(found.scope, min(len(found.scope), writer.rng.randint(1, 3)))
    names = [column.name for column in keys]
    calls = [call(writer, found.scope) for _ in range(writer.rng.randint(1, 2))]
    shown = [(column.name, column.type.chosen()) for column in keys]
    items = [*shown, (f"grouping({', '.join(names)})", INT), *calls]
    return writer.select("SELECT", items, f"{found.sql()} GROUP BY {_sets(writer, names)}")


def _sets(writer: Writer, names: list[str]) -> str:
    listed = ", ".join(names)
    singles = ", ".join(f"({name})" for name in names)
    shapes = [f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS ({singles}, ())"]
    if len(names) > 1:
        shapes.append(f"{names[0]}, ROLLUP ({', '.join(names[1:])})")
        shapes.append(f"GROUPING SETS (({listed}), ({names[0]}), ({names[0]}))")
    return writer.rng.choice(shapes)


def grouped_having(writer: Writer) -> Query:
    """Group, and keep groups by a subquery that sees their keys."""
    found = source(writer, (0, 0, 1))
    keys = tuple(writer.rng.sample(found.scope, min(len(found.scope), 2)))
    calls = [call(writer, found.scope) for _ in range(writer.rng.randint(0, 2))]
    shown = [(column.name, column.type.chosen()) for column in keys]
    # A group shows its keys and no whole row: in parentheses they name no table whose row could be asked for.
    shown_keys = tuple(replace(column, name=f"({column.name})") for column in keys)
    having = f"{condition(writer, shown_keys)} {writer.rng.choice(('AND', 'OR'))} count(*) > 1"
    rest = f"{found.sql()} GROUP BY {', '.join(column.name for column in keys)} HAVING {having}"
    return writer.select("SELECT", [*shown, *calls], rest)


def groups_of_groups(writer: Writer) -> Query:
    """Aggregate what is aggregated."""
    inner, alias = grouped(writer), writer.alias()
    scope = qualified(alias, inner.columns)
    calls = [call(writer, scope) for _ in range(writer.rng.randint(1, 3))]
    if writer.chance(0.3):
        return writer.select("SELECT", calls, f" FROM ({inner.sql}) AS {alias}")
    key = writer.rng.choice(scope)
    rest = f" FROM ({inner.sql}) AS {alias} GROUP BY {key.name}"
    return writer.select("SELECT", [(key.name, key.type.chosen()), *calls], rest)


def recursive(writer: Writer) -> Query:
    """Follow a bounded recursion from the integers of a table."""
    text, scope = writer.table()
    start = _integer(writer, scope)
    name, left = f"cte{next(writer.names)}", writer.alias()
    union = writer.rng.choice(("UNION", "UNION ALL"))
    first = f"SELECT CAST({start} AS integer) AS n, 0 AS depth FROM {text}"
    step = f"SELECT ({left}.n + 3) % 5, {left}.depth + 1 FROM {name} AS {left} WHERE {left}.depth < 3"
    columns = (Column("n", INT), Column("depth", INT))
    return Query(f"WITH RECURSIVE {name} AS ({first} {union} {step}) SELECT n, depth FROM {name}", columns)


def _integer(writer: Writer, scope: Scope) -> str:
    names = [column.name for column in scope if alike(column.type, INT)]
    return writer.rng.choice(names) if names else "1"
