"""Weighted rows in PostgreSQL text: consolidated, or expanded to the rows that they stand for."""

from pytrickle.plan.algebra.relation import Operation
from pytrickle.plan.sql.dialect import row_text

WEIGHT = "pgt_weight"
# Where a row is stored: in which table, and at which place.
TABLE = "pgt_table"
PLACE = "pgt_place"


def consolidate(rows: str, columns: tuple[str, ...], exact: bool = True) -> str:
    """Add up the weights of equal rows and drop what cancels out; compare by text unless `exact`."""
    if exact:
        names = ", ".join(columns)
        group = f" GROUP BY {names}" if names else ""
        items = f"{names}, " if names else ""
        net = f"SELECT {items}CAST(sum({WEIGHT}) AS bigint) AS {WEIGHT}"
        return f"{net} FROM (\n{rows}\n) AS d{group} HAVING sum({WEIGHT}) <> 0"
    listed = ", ".join(columns)
    imaged = f"SELECT {listed}, {WEIGHT}, {row_text(columns)} AS pgt_image FROM (\n{rows}\n) AS d"
    total = f"CAST(sum({WEIGHT}) OVER (PARTITION BY pgt_image) AS bigint) AS {WEIGHT}"
    each = f"SELECT DISTINCT ON (pgt_image) {listed}, {total} FROM (\n{imaged}\n) AS d"
    return f"SELECT {listed}, {WEIGHT} FROM (\n{each}\n) AS d WHERE {WEIGHT} <> 0"


def consolidate_at_once(operation: Operation, rows: str) -> str:
    """Consolidate the rows of an operation before anything around it is computed from them."""
    return f"{consolidate(rows, operation.arguments, operation.exact)}\nOFFSET 0"


def expand(rows: str, columns: tuple[str, ...], exact: bool, plain: bool) -> str:
    """Write weighted rows as so many rows each; `plain` says that every weight is one already."""
    listed = ", ".join(f"d.{column}" for column in columns)
    if plain:
        return f"SELECT {listed} FROM (\n{rows}\n) AS d"
    net = consolidate(rows, columns, exact)
    return f"SELECT {listed} FROM (\n{net}\n) AS d, generate_series(1, d.{WEIGHT}) AS e (pgt_n)"
