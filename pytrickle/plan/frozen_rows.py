"""Frozen rows: changes of rows that are too old are not applied, but written into the ledger of late changes.

The ledger has each row in full, with a weight, so that the rows of the stream table and the ledger's add up to what the
query answers.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.plan.apply_plan import CHANGES
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.few_rows import PARAMETERS, literal
from pytrickle.plan.postgres.text import as_text, cast_may_lose
from pytrickle.plan.sql.dialect import quote

BEFORE = "\0frozen_before\0"
WITHHOLD = """
WITH late AS (
    DELETE FROM pg_temp.{staged} AS g WHERE g.{event_time} < {before}
    RETURNING g.{event_time} AS event_time, g.{weight} AS weight, {change} AS change
)
{record}"""
# What few changes are taken from the parameters: those of frozen rows are recorded within the same statement.
TAKEN = """\
g AS MATERIALIZED (
{parameters}
), late AS (
    SELECT g.{event_time} AS event_time, g.{weight} AS weight, {change} AS change FROM g WHERE g.{event_time} < {before}
), recorded AS ({record}), c AS MATERIALIZED (
    SELECT * FROM g WHERE (g.{event_time} < {before}) IS NOT TRUE
)"""
RECORD = """
INSERT INTO pgtrickle.pgt_late_changes (pgt_id, window_end, closed_through, weight, change)
SELECT {pgt_id}, d.event_time, {before}, sum(d.weight), d.change
FROM ({rows}) AS d GROUP BY d.event_time, d.change HAVING sum(d.weight) <> 0
"""
LATE = "SELECT * FROM late"
# What differs from rows that were computed anew is in the ledger already, but for what is new. Rows that an earlier
# query had frozen are not compared.
UNKNOWN = """
    SELECT d.* FROM (
        SELECT * FROM late
        UNION ALL
        SELECT l.window_end, -l.weight, l.change FROM pgtrickle.pgt_late_changes AS l WHERE l.pgt_id = {pgt_id}
    ) AS d JOIN pgtrickle.pgt_stream_tables AS t ON t.pgt_id = {pgt_id}
    WHERE (d.event_time < t.earlier_query_through) IS NOT TRUE
"""
CHANGE = "jsonb_object(CAST(ARRAY[{names}] AS text[]), CAST(ARRAY[{values}] AS text[]))"


@dataclass(frozen=True, slots=True)
class FrozenRows:
    """Writes how changes of frozen rows are withheld; `column` says how old a row of the stream table is.

    The parameter `frozen_before` is the moment before which rows are frozen.
    """

    definition: Definition
    column: str

    def withhold(self, whole: bool) -> str:
        """Write the statement that takes changes of frozen rows out of the staged ones, and records them.

        After a `whole` refresh these are all that differs from the stored rows.
        """
        return self._filled(WITHHOLD, UNKNOWN if whole else LATE)

    def taken(self) -> str:
        """Write how few changes are taken from the parameters that hold them, as `apply_text` has it."""
        return self._filled(TAKEN, LATE)

    def _filled(self, template: str, rows: str) -> str:
        known = rows.format(pgt_id=self.definition.pgt_id)
        text = template.format(
            parameters=PARAMETERS,
            staged=CHANGES,
            event_time=quote(self.column),
            before=BEFORE,
            weight=WEIGHT,
            change=change_of("g", self.definition.columns),
            record=RECORD.format(pgt_id=self.definition.pgt_id, before=BEFORE, rows=known),
        )
        return literal(text).replace(BEFORE, "CAST(%(frozen_before)s AS timestamptz)")

    def key(self, key: tuple[str, ...]) -> tuple[str, ...]:
        """Return the key of the stream table, by which a frozen row and its later state are two rows.

        >>> FrozenRows(None, "at").key(("id",))
        ('id', 'at')
        """
        return (*key, self.column) if key and self.column not in key else key


def change_of(alias: str, columns: Iterable[tuple[str, str]]) -> str:
    r"""Write a row as the ledger has it: an object of its values as texts, which their types read again.

    >>> change_of("g", [("id", "integer")])
    'jsonb_object(CAST(ARRAY[\'id\'] AS text[]), CAST(ARRAY[CAST(g."id" AS text)] AS text[]))'
    """
    found = tuple(columns)
    return CHANGE.format(
        names=", ".join(exp.Literal.string(name).sql("postgres") for name, _ in found),
        values=", ".join(as_text(f"{alias}.{quote(name)}", cast_may_lose(type_name)) for name, type_name in found),
    )
