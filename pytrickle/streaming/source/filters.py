"""Filters of a query that the database applies instead of Spark. Needs PySpark 4.1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from pytrickle.database import connect
from pytrickle.streaming.source.columns import COMMIT, Column
from pytrickle.streaming.source.conditions import Condition
from pytrickle.streaming.source.readers import TableReader, find

_OPERATORS: Mapping[type[Filter], str] = {
    EqualTo: "=",
    EqualNullSafe: "IS NOT DISTINCT FROM",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    In: "IN",
    LessThan: "<",
    LessThanOrEqual: "<=",
}


class FilteringReader(TableReader):
    """Leaves to the database what it filters exactly as Spark would, and to Spark the rest."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take the filters that are exact; return the others, which Spark applies."""
        with connect(self.options.dsn, role="reader") as connection:
            found = find(connection, self.options)
        commit = {column.name for column in COMMIT} if self.options.changes else set()
        columns = {column.name: column for column in found.columns if column.name not in commit}
        conditions = [(each, condition_of(each, columns)) for each in filters]
        self.conditions = tuple(condition for _, condition in conditions if condition)
        return [each for each, condition in conditions if condition is None]


def condition_of(found: Filter, columns: Mapping[str, Column]) -> Condition | None:
    """Return a filter as a condition; None where PostgreSQL might answer another way than Spark."""
    negated = isinstance(found, Not)
    plain: Any = found.child if isinstance(found, Not) else found
    path: tuple[str, ...] = getattr(plain, "attribute", ())
    if len(path) != 1 or path[0] not in columns:
        return None
    condition = _condition(plain, columns[path[0]], negated)
    return condition if condition and condition.is_exact() else None


def _condition(plain: Any, column: Column, negated: bool) -> Condition | None:
    if isinstance(plain, IsNull | IsNotNull):
        return Condition(column, "IS NULL", (), negated != isinstance(plain, IsNotNull))
    if type(plain) not in _OPERATORS:
        return None
    values = tuple(plain.value) if isinstance(plain, In) else (plain.value,)
    return Condition(column, _OPERATORS[type(plain)], values, negated) if values else None
