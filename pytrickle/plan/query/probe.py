"""What the planner must ask a server."""

from collections.abc import Sequence
from typing import Protocol

from pytrickle.catalog.definition import Definition
from pytrickle.plan.sql.types import hashes_as_it_compares


class Probe(Protocol):
    """Questions about SQL text that only a server can answer; neither runs the query."""

    def column_types(self, query: str) -> tuple[str, ...]:
        """Return the full type name of every column of a query."""

    def collations(self, query: str) -> tuple[str | None, ...]:
        """Return the collation of every column of a query, as it is written; None for none and for the default one."""

    def domains(self, query: str) -> tuple[str | None, ...]:
        """Return the domain of every column of a query, whose types are told without; None where it has none."""

    def same_query(self, first: str, second: str) -> bool:
        """Tell whether PostgreSQL understands two texts as the same query."""

    def needs_path(self, definition: Definition) -> str | None:
        """Name what makes the texts of a definition mean something else than at creation, or depend on the path."""

    def key_types(self, left: str, right: str) -> tuple[str, str] | None:
        """Return for each of two types that `=` compares the type whose values are grouped as they are compared.

        That is the type itself, or else the one to which PostgreSQL casts it for the comparison; None where that is
        grouped by another equality. Types that cannot be grouped at all are left as they are.
        """

    def hashable(self, types: tuple[str, ...]) -> tuple[bool, ...]:
        """Tell for every type whether its values can be hashed."""

    def estimated_rows(self, query: str) -> float:
        """Return how many rows PostgreSQL expects of a query; infinitely many where it cannot plan it."""

    def is_enumeration(self, type_name: str) -> bool:
        """Tell whether a type is an enumeration, neither a domain of one nor an array."""

    def is_enumeration_or_range(self, type_name: str) -> bool:
        """Tell whether a type is an enumeration, a range or a multirange, no domain of one."""

    def has_one_text(self, type_name: str) -> bool:
        """Tell whether equal values of a type are the same text, apart from what a collation says of texts in it."""


def hashed_columns(columns: Sequence[tuple[str, str]], definition: Definition, probe: Probe) -> tuple[str, ...]:
    """Return the names of the columns whose equal values have one hash, given names and types."""
    can = probe.hashable(tuple(type_name for _, type_name in columns))
    found = zip(columns, can, strict=True)
    return tuple(name for (name, of), hashable in found if hashable and hashes_as_it_compares(of, definition))
