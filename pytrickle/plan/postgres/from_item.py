"""Items of FROM: tables by name, and functions of the row to their left."""

from pytrickle.catalog.definition import Source
from pytrickle.plan.algebra.relation import Function
from pytrickle.plan.sql.dialect import quote


def function_item(leaf: Function) -> str:
    """Write a function as an item of FROM."""
    return f"LATERAL {leaf.sql} AS {quote(leaf.alias)}({', '.join(map(quote, leaf.columns))})"


def table_name(source: Source) -> str:
    """Write a source's qualified, quoted name."""
    return f"{quote(source.schema)}.{quote(source.name)}"
