"""A row's columns compared with a value that changed: which rows compare otherwise with the new one than with the old.

They equal one of both values, or lie between them, where an index finds them however many rows there are besides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.relation import Column, Expr, Join, Predicate, scans
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.sql.dialect import quote

# Asked once for all rows: a subquery that reads nothing of a row.
VALUE = "(SELECT {value} FROM {changes} AS {alias} WHERE {alias}.{weight} {sign} 0)"
# Each side by itself is asked once, too.
BOUND = (
    "(SELECT CASE WHEN {new} IS NULL OR {old} IS NULL THEN CAST('{extreme}' AS {type}) ELSE {among}({new}, {old}) END)"
)
OTHERWISE = "(({new}) IS TRUE) <> (({old}) IS TRUE)"
EITHER = "{column} IN ({new}, {old})"
BETWEEN = "{column} >= {low} AND {column} <= {high}"
# Out of a subquery a collation decides less than beside the other side.
COLLATE = " COLLATE "
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
# The least and the greatest value of the types that have one: nothing lies beyond it.
EXTREMES = {
    "date": ("-infinity", "infinity"),
    "timestamp": ("-infinity", "infinity"),
    "timestamptz": ("-infinity", "infinity"),
    "numeric": ("-Infinity", "NaN"),
    "float4": ("-Infinity", "NaN"),
    "float8": ("-Infinity", "NaN"),
    "int2": ("-32768", "32767"),
    "int4": ("-2147483648", "2147483647"),
    "int8": ("-9223372036854775808", "9223372036854775807"),
}


@dataclass(frozen=True, slots=True)
class MovedValue:
    """A comparison of something with a value of a leaf of one row, called `alias`."""

    alias: str
    beside: Expr
    operator: str
    value: Expr

    @classmethod
    def of(cls, predicate: Predicate, alias: str) -> "MovedValue | None":
        """Take a condition apart, if each of its sides reads either the leaf alone or nothing of it."""
        found, only = predicate.comparison, frozenset({alias})
        if found is None or predicate.expr.holds_query or COLLATE in predicate.expr.sql:
            return None
        if found.right.tables == only and alias not in found.left.tables:
            return cls(alias, found.left, found.operator, found.right)
        if found.left.tables == only and alias not in found.right.tables:
            return cls(alias, found.right, MIRRORED.get(found.operator, found.operator), found.left)
        return None

    def test(self, changes: str, sign: str) -> str:
        """Compare with the value of the row that came, by the sign `>` of its weight, or of the one that went."""
        return f"({self.beside.sql}) {self.operator} {self._value(changes, sign)}"

    def narrowed(self, changes: str, types: Mapping[Column, str]) -> str | None:
        """Write what an index finds: all rows that compare otherwise now, and few others.

        None unless it is a column of a source that is compared: for one of both values, or for the range of a type that
        has ends.
        """
        column = self.beside.column
        if column is None or column not in types:
            return None
        new, old = (self._value(changes, sign) for sign in "><")
        if self.operator == "=":
            return EITHER.format(column=self.beside.sql, new=new, old=old)
        extremes = EXTREMES.get(types[column])
        if extremes is None or self.operator not in MIRRORED:
            return None
        low, high = (
            BOUND.format(new=new, old=old, extreme=extreme, type=types[column], among=among)
            for extreme, among in zip(extremes, ("least", "greatest"), strict=True)
        )
        return BETWEEN.format(column=self.beside.sql, low=low, high=high)

    def _value(self, changes: str, sign: str) -> str:
        alias = quote(self.alias)
        return VALUE.format(value=self.value.sql, changes=changes, alias=alias, weight=WEIGHT, sign=sign)


def column_types(join: Join, definition: Definition) -> dict[Column, str]:
    """Return the base types of the columns of a join's sources."""
    return {
        (scan.alias, column.name): column.base_type
        for scan in scans(join)
        for column in definition.source(scan.relid).columns
    }


def compare_otherwise(moved: Sequence[MovedValue], changes: str, types: Mapping[Column, str]) -> str:
    """Write that all of some comparisons hold with the row that came and not with the one that went, or the reverse.

    Where there is no such row the value is NULL, with which no comparison is true. Where each of them is of a column,
    the rows lie between what one of these was compared with and is now.
    """
    new, old = (" AND ".join(each.test(changes, sign) for each in moved) for sign in "><")
    otherwise = OTHERWISE.format(new=new, old=old)
    found = [text for each in moved if (text := each.narrowed(changes, types))]
    return f"({' OR '.join(found)}) AND {otherwise}" if len(found) == len(moved) else otherwise
