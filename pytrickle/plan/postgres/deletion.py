"""Which stored rows changes delete: of a row that is stored many times, as many copies as a change says."""

from pytrickle.plan.postgres.consolidate import WEIGHT

# Each change looks no further than for so many copies, of which there may be as many as the table has rows.
FOUND = """\
SELECT t.row FROM {changes} AS c CROSS JOIN LATERAL (
        SELECT t.ctid AS row FROM {table} AS t WHERE {same} LIMIT greatest(-c.{weight}, 0)
    ) AS t WHERE c.{weight} < 0"""
# Without an index each change would read the table to its first copy: both are hashed instead.
COMPARED = """\
SELECT row FROM (
        SELECT t.ctid AS row, -c.{weight} AS copies, row_number() OVER (PARTITION BY c.{number}) AS copy
        FROM {changes} AS c JOIN {table} AS t ON {same} WHERE c.{weight} < 0
    ) AS n WHERE copy <= copies"""


def deletion(table: str, same: str, changes: str, number: str, found_by_index: bool) -> str:
    """Write the statement that deletes what changes of negative weight say.

    `same` says whether a change `c` and a stored row `t` have the same content, `number` is a column that tells changes
    apart.

    >>> print(deletion("shop", "t.a = c.a", "changed", "pgt_pos", True))
    DELETE FROM shop WHERE ctid = ANY (ARRAY(
        SELECT t.row FROM changed AS c CROSS JOIN LATERAL (
            SELECT t.ctid AS row FROM shop AS t WHERE t.a = c.a LIMIT greatest(-c.pgt_weight, 0)
        ) AS t WHERE c.pgt_weight < 0
    ))
    """
    template = FOUND if found_by_index else COMPARED
    rows = template.format(table=table, same=same, changes=changes, number=number, weight=WEIGHT)
    return f"DELETE FROM {table} WHERE ctid = ANY (ARRAY(\n    {rows}\n))"
