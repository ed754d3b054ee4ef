"""Weighted rows in PostgreSQL text: consolidated, or expanded to the rows that they stand for."""

from pytrickle.plan.algebra.relation import Operation
from pytrickle.plan.sql.copies import copies
from pytrickle.plan.sql.dialect import row_text

WEIGHT = "pgt_weight"
# Where a row is stored: in which table, and at which place.
TABLE = "pgt_table"
PLACE = "pgt_place"
BY_VALUE = """\
SELECT {items}CAST(sum({weight}) AS bigint) AS {weight} FROM (
{rows}
) AS d{group} HAVING sum({weight}) <> 0"""
BY_TEXT = """\
SELECT {columns}, {weight} FROM (
SELECT DISTINCT ON (pgt_text) {columns}, CAST(sum({weight}) OVER (PARTITION BY pgt_text) AS bigint) AS {weight} FROM (
SELECT {columns}, {weight}, {text} AS pgt_text FROM (
{rows}
) AS d
) AS d
) AS d WHERE {weight} <> 0"""
NEW_LESS_OLD = "SELECT *, 1 AS {weight} FROM (\n{new}\n) AS n\nUNION ALL\nSELECT *, -1 FROM (\n{old}\n) AS o"
BEFORE = "SELECT {columns}{weight} FROM {now} UNION ALL SELECT {columns}-{weight} FROM {changed}"
PLAIN = "SELECT {columns} FROM (\n{rows}\n) AS d"
REPEATED = f"SELECT {{columns}} FROM (\n{{rows}}\n) AS d, {copies(f'd.{WEIGHT}')}"


def new_less_old(new: str, old: str) -> str:
    """Write rows of weight one, less others."""
    return NEW_LESS_OLD.format(weight=WEIGHT, new=new, old=old)


def before(now: str, changed: str, columns: tuple[str, ...]) -> str:
    """Write the rows that were there before some changed, from those that are there now: two tables with weights."""
    listed = "".join(f"{column}, " for column in columns)
    return BEFORE.format(columns=listed, weight=WEIGHT, now=now, changed=changed)


def consolidate(rows: str, columns: tuple[str, ...], exact: bool = True) -> str:
    """Add up the weights of equal rows and drop what cancels out; compare by text unless `exact`."""
    names = ", ".join(columns)
    if not exact:
        return BY_TEXT.format(weight=WEIGHT, columns=names, text=row_text(columns), rows=rows)
    items, group = (f"{names}, ", f" GROUP BY {names}") if names else ("", "")
    return BY_VALUE.format(weight=WEIGHT, items=items, rows=rows, group=group)


def consolidate_at_once(operation: Operation, rows: str) -> str:
    """Consolidate the rows of an operation before anything around it is computed from them."""
    return f"{consolidate(rows, operation.arguments, operation.exact)}\nOFFSET 0"


def expand(rows: str, columns: tuple[str, ...], exact: bool, plain: bool) -> str:
    """Write weighted rows as so many rows each; `plain` says that every weight is one already."""
    listed = ", ".join(f"d.{column}" for column in columns)
    if plain:
        return PLAIN.format(columns=listed, rows=rows)
    return REPEATED.format(columns=listed, rows=consolidate(rows, columns, exact))
