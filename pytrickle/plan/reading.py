"""What PostgreSQL is asked for, as text: each column that is read, and the weight of a row where it has one."""

from pytrickle.plan.analysis import Analysis
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.text import as_text, cast_may_lose
from pytrickle.plan.refresh_plan import PostgresQuery

READ = "SELECT {items}\nFROM (\n{query}\n) AS q"


def lossy_columns(shape: Analysis) -> frozenset[str]:
    """Name the columns whose cast to text may lose something; recomputed values count as such, whatever their type."""
    types = {f"r{i}": type_name for i, (_, type_name) in enumerate(shape.body.columns)}
    grouped = shape.grouped
    types |= dict(grouped.types) if grouped else {}
    values = {column.name for column in grouped.values} if grouped else set()
    return frozenset(values | {name for name, type_name in types.items() if cast_may_lose(type_name)})


def reading(
    query: str, columns: tuple[str, ...], lossy: frozenset[str], settings: tuple[str, ...], weighted: bool = False
) -> PostgresQuery:
    items = [f"{as_text(f'q.{column}', column in lossy)} AS {column}" for column in columns]
    items += [f"q.{WEIGHT}"] if weighted else []
    return PostgresQuery(READ.format(items=", ".join(items), query=query), columns, weighted, settings)
