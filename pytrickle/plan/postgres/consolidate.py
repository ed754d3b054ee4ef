"""Weighted rows in PostgreSQL text: netted by content, and as the bag of rows that they stand for."""

from pytrickle.plan.algebra.relation import Operation

WEIGHT = "pgt_weight"
# Where a row is stored: in which table, and at which place.
TABLE = "pgt_table"
PLACE = "pgt_place"


def netted(rows: str, columns: tuple[str, ...], exact: bool = True) -> str:
    """Net weighted rows and drop what cancels out; unless equal is identical (`exact`), rows are told apart by text."""
    if exact:
        names = ", ".join(columns)
        group = f" GROUP BY {names}" if names else ""
        items = f"{names}, " if names else ""
        net = f"SELECT {items}CAST(sum({WEIGHT}) AS bigint) AS {WEIGHT}"
        return f"{net} FROM (\n{rows}\n) AS d{group} HAVING sum({WEIGHT}) <> 0"
    listed = ", ".join(columns)
    imaged = f"SELECT {listed}, {WEIGHT}, {image(columns)} AS pgt_image FROM (\n{rows}\n) AS d"
    total = f"CAST(sum({WEIGHT}) OVER (PARTITION BY pgt_image) AS bigint) AS {WEIGHT}"
    each = f"SELECT DISTINCT ON (pgt_image) {listed}, {total} FROM (\n{imaged}\n) AS d"
    return f"SELECT {listed}, {WEIGHT} FROM (\n{each}\n) AS d WHERE {WEIGHT} <> 0"


def settled(operation: Operation, rows: str) -> str:
    """Net the rows of an operation before anything around it is computed from them."""
    return f"{netted(rows, operation.arguments, operation.exact)}\nOFFSET 0"


def image(columns: tuple[str, ...]) -> str:
    """Write the text of a row, which differs where any value differs."""
    return f"CAST(ROW({', '.join(columns)}) AS text)"


def bag(rows: str, columns: tuple[str, ...], exact: bool, plain: bool) -> str:
    """Write weighted rows as so many rows each; `plain` says that every weight is one already."""
    listed = ", ".join(f"d.{column}" for column in columns)
    if plain:
        return f"SELECT {listed} FROM (\n{rows}\n) AS d"
    return (
        f"SELECT {listed} FROM (\n{netted(rows, columns, exact)}\n) AS d, generate_series(1, d.{WEIGHT}) AS e (pgt_n)"
    )


def result(operation: Operation, rows: str) -> str:
    """Apply an operation to a bag of its arguments."""
    if operation.ordered:
        first = [*operation.keys, *operation.ordering, image(operation.arguments)]
        rows = f"SELECT * FROM (\n{rows}\n) AS d ORDER BY {', '.join(first)}"
    return f"{operation.head} (\n{rows}\n) {operation.tail}"
