"""How many rows a read is expected to give, so that few are computed by one task."""

from collections.abc import Iterable

from pytrickle.catalog.definition import Definition

# What is joined or grouped of so few rows is little, whatever it is.
FEW_BELOW = 2_000


def of_table(definition: Definition, relid: int) -> int | None:
    """Expect of a table what statistics, or its size, say; None of a foreign one, which says that it has no rows."""
    return definition.source(relid).estimated_rows or None


def of_few(definition: Definition, relids: Iterable[int]) -> int | None:
    """Expect of what is computed from small tables as many rows as these have; None of what reads more."""
    found = [of_table(definition, relid) for relid in relids]
    known = [rows for rows in found if rows is not None]
    return sum(known) if len(known) == len(found) and sum(known) <= FEW_BELOW else None
