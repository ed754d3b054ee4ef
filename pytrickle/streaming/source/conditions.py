"""Conditions on rows that PostgreSQL and Spark answer alike, whatever the values are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from psycopg import sql

from pytrickle.database import filled
from pytrickle.streaming.source.columns import Column

# How a value of Spark's is written for a column of this type. Numbers that are not exact, and char(n), which leaves
# out blanks when it compares, are not among them.
_LITERALS: Mapping[str, tuple[type, str]] = {
    "bool": (bool, "pg_catalog.bool"),
    "int2": (int, "pg_catalog.int8"),
    "int4": (int, "pg_catalog.int8"),
    "int8": (int, "pg_catalog.int8"),
    "numeric": (Decimal, "pg_catalog.numeric"),
    "date": (date, "pg_catalog.date"),
    "timestamp": (datetime, "pg_catalog.timestamp"),
    "timestamptz": (datetime, "pg_catalog.timestamptz"),
    "text": (str, "pg_catalog.text"),
    "varchar": (str, "pg_catalog.text"),
}
_TEXTS = ("text", "varchar")
_RANGES = ("<", "<=", ">", ">=")
_FORMS = {
    "IS NULL": "{column} IS NULL",
    "IN": "{column} OPERATOR(pg_catalog.=) ANY (ARRAY[{values}])",
    "IS NOT DISTINCT FROM": "({column} OPERATOR(pg_catalog.=) {values} AND {column} IS NOT NULL)",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of a column with values: `operator` is =, a range, IN, IS NULL or IS NOT DISTINCT FROM."""

    column: Column
    operator: str
    values: tuple[Any, ...] = ()
    negated: bool = False

    def is_exact(self) -> bool:
        """Whether PostgreSQL's answer is the same as Spark's for every row."""
        kind = self.column.kind or ""
        if kind not in _LITERALS or (kind == "numeric" and not pa.types.is_decimal(self.column.arrow)):
            return False
        # Of texts Spark compares the bytes, PostgreSQL too where they are equal; its order is that of the language.
        if kind in _TEXTS and not (self.column.bytewise and self.operator not in _RANGES):
            return False
        return all(_fits(value, kind) for value in self.values)

    def written(self, column: sql.Composable) -> sql.Composed:
        """Write the condition on an expression that has the value of the column."""
        kind = _LITERALS[self.column.kind or ""][1]
        values = [filled("{value}::" + kind, value=sql.Literal(_plain(value))) for value in self.values]
        form = _FORMS.get(self.operator, f"{{column}} OPERATOR(pg_catalog.{self.operator}) {{values}}")
        condition = filled(form, column=column, values=sql.SQL(", ").join(values))
        return filled("NOT ({condition})", condition=condition) if self.negated else condition


def where(conditions: Iterable[sql.Composable]) -> sql.Composed:
    """Write a WHERE clause, or nothing."""
    written = list(conditions)
    return sql.SQL(" WHERE " if written else "") + sql.SQL(" AND ").join(written)


def _fits(value: Any, kind: str) -> bool:
    if type(value) is not _LITERALS[kind][0]:
        return False
    if isinstance(value, datetime):
        return (value.tzinfo is not None) == (kind == "timestamptz")
    if isinstance(value, Decimal):
        return value.is_finite()
    return "\x00" not in value if isinstance(value, str) else True


def _plain(value: Any) -> str:
    """Return a text that PostgreSQL reads as the value, whatever the settings of the session are."""
    return value.isoformat() if isinstance(value, date) else str(value)
