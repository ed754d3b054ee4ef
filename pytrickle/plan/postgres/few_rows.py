"""Few changed rows, applied without temporary tables: they are parameters, and the statements never change.

A parameter holds rows as the text of an array of the table's own row type, so that PostgreSQL reads each value by its
type's input function, as COPY does. Since the text of the statements stays the same, their plans are kept.
"""

from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.sql.dialect import row_text

# A row type's array never has a cast of its own that a stranger could have made: its owner is that of the table.
ROWS = "unnest(CAST(CAST(%({parameter})s AS text) AS {table}[]))"
WEIGHTS = "unnest(CAST(CAST(%(weights)s AS text) AS bigint[]))"
# No column of a stream table is named like the last one: that name is reserved.
CHANGED = "SELECT * FROM ROWS FROM ({rows}, {weights}) WITH ORDINALITY AS c ({columns}{weight}, pgt_pos)"
# Where the rows that the parameters hold are written.
PARAMETERS = "\0parameters\0"
TAKEN = f"c AS MATERIALIZED (\n{PARAMETERS}\n)"
# The rows to insert wait for the deletion: both may have the same key.
APPLY = """\
WITH {taken}, deleted AS (
    {deletion} RETURNING 1
), counted AS MATERIALIZED (
    SELECT (SELECT CAST(coalesce(sum(-{weight}), 0) AS bigint) FROM c WHERE {weight} < 0) AS expected,
        (SELECT count(*) FROM deleted) AS deleted
), inserted AS (
    INSERT INTO {table}{target_columns}
    SELECT {items} FROM c, generate_series(1, c.{weight}) AS e (pgt_n)
    WHERE c.{weight} > 0 AND (SELECT n.expected = n.deleted FROM counted AS n) RETURNING 1
)
SELECT expected, deleted, (SELECT count(*) FROM inserted) FROM counted"""
DIFFERENCE = """\
SELECT {columns}{weight} FROM (
    SELECT DISTINCT ON (pgt_text) {columns}sum(pgt_sign) OVER (PARTITION BY pgt_text) AS {weight}
    FROM (
        SELECT {columns}{sign} AS pgt_sign, {text} AS pgt_text FROM ({after}) AS a
        UNION ALL
        SELECT {columns}-1 AS pgt_sign, {text} AS pgt_text FROM ({before}) AS b
    ) AS u
) AS n WHERE {weight} <> 0"""

ARRAYS = "SELECT CAST(array_agg(ROW({columns})) AS text), CAST(array_agg({weight}) AS text) FROM (\n{rows}\n) AS n"


def literal(text: str) -> str:
    """Write SQL for a statement with parameters, in which a percent sign is doubled."""
    return text.replace("%", "%%")


def rows_of(table: str, parameter: str = "rows") -> str:
    """Write the rows that a parameter holds, with the columns of a table.

    >>> rows_of('"public"."%"')
    'unnest(CAST(CAST(%(rows)s AS text) AS "public"."%%"[]))'
    """
    return ROWS.format(parameter=parameter, table=literal(table))


def apply_text(table: str, columns: tuple[str, ...], deletion: str, taken: str = TAKEN) -> str:
    """Write the statement that deletes and inserts rows of a table by the parameters `rows` and `weights`.

    It returns how many rows it was to delete, how many it deleted, and how many it inserted: none, unless the first
    two are the same. `deletion` deletes what the changes `c` say, whose numbers are `pgt_pos`; `taken` says how they
    are taken from the parameters, for which a mark stands.
    """
    listed = "".join(f"{column}, " for column in map(literal, columns))
    changed = CHANGED.format(rows=rows_of(table), weights=WEIGHTS, columns=listed, weight=WEIGHT)
    return APPLY.format(
        taken=taken.replace(PARAMETERS, changed),
        table=literal(table),
        deletion=literal(deletion),
        weight=WEIGHT,
        target_columns=f" ({listed.removesuffix(', ')})" if columns else "",
        items=", ".join(f"c.{literal(column)}" for column in columns),
    )


def difference(after: str, before: str, columns: tuple[str, ...], sign: str = "1") -> str:
    """Write `after - before` as weighted rows, consolidated by their text; `sign` is the weight of the first."""
    listed = "".join(f"{column}, " for column in columns)
    text = row_text(columns)
    return DIFFERENCE.format(columns=listed, weight=WEIGHT, text=text, after=after, before=before, sign=sign)


def as_arrays(rows: str, columns: tuple[str, ...]) -> str:
    """Write a query that returns weighted rows as the two parameters of `apply_text`; NULL where there are none."""
    return ARRAYS.format(columns=", ".join(columns), weight=WEIGHT, rows=rows)
