"""Few changes, read by statements whose text is the same for all cuts, so that PostgreSQL keeps their plans.

They return the rows as `apply_few` is given them. Since the number of changes is not known while such a statement is
written, it reads nothing where there are many.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.plan.apply_plan import ApplyPlan, Stage
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.refresh_plan import PostgresQuery, RefreshPlan

# What fits into the limits is collected, and the rest only counted, so that it takes no memory.
STATEMENT = """\
WITH pgt_gate AS MATERIALIZED (
    SELECT {counts} < %(most_changes)s::bigint AS few
)
SELECT (SELECT few FROM pgt_gate) AND count(*) FILTER (WHERE NOT pgt_fits) = 0,
    CAST(array_agg({row}) FILTER (WHERE pgt_fits) AS text), {weights}
FROM (
    SELECT q.*, row_number() OVER () <= %(most_rows)s::bigint
        AND sum({size}) OVER (ROWS UNBOUNDED PRECEDING) <= %(most_bytes)s::bigint AS pgt_fits
    FROM (
{query}
    ) AS q WHERE (SELECT few FROM pgt_gate)
) AS f"""
WEIGHTS = f"CAST(array_agg({WEIGHT}) FILTER (WHERE pgt_fits) AS text)"
COUNTED = "(SELECT count(*) FROM (SELECT FROM {buffer} WHERE {beyond} LIMIT %(most_changes)s::bigint) AS c)"


@dataclass(frozen=True, slots=True)
class FewStatements:
    """The statements of one plan. Each returns whether the changes and the rows are few, then, if so, the rows.

    These come as the text of an array of rows, and of an array of their weights; NULL where there are none.
    """

    rows: str
    keyed: str | None
    kept: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: RefreshPlan, ranges: Iterable[ChangeRange]) -> "FewStatements | None":
        """Write them for the changes in some ranges; None where few rows are not applied as they are read.

        The queries of the plan must be written with parameters in place of cuts. Without ranges all that they return is
        read, however many changes there are.
        """
        layout = _layout(plan.apply)
        if plan.read is None or layout is None:
            return None
        counts = _counts(ranges, plan.shape.definition)
        keyed = _statement(plan.keyed, layout, counts) if plan.keyed else None
        kept = tuple(_statement(each.read, each.table.columns, counts) for each in plan.kept)
        return cls(_statement(plan.read, layout, counts), keyed, kept)


def _layout(plan: ApplyPlan) -> Sequence[str] | None:
    """Name the columns that the parameters of `apply_few` have, by the names under which they are read."""
    if plan.windows or (plan.body and not plan.body.shown_few):
        return None
    if plan.stage is Stage.CHANGES:
        return [staged for staged, _ in plan.names]
    return plan.state.few.columns if plan.stage in {Stage.INCREMENTS, Stage.GROUPS} and plan.state else None


def _statement(read: PostgresQuery, layout: Sequence[str], counts: str) -> str:
    return STATEMENT.format(
        counts=counts,
        row=f"ROW({', '.join(column if column in read.columns else 'NULL' for column in layout)})",
        weights=WEIGHTS if read.weighted else "CAST(NULL AS text)",
        size=f"pg_column_size(ROW({', '.join(read.columns)}))",
        query=read.consolidated,
    )


def _counts(ranges: Iterable[ChangeRange], definition: Definition) -> str:
    counts = [
        COUNTED.format(buffer=definition.source(each.relid).buffer, beyond=each.given_old.beyond())
        for each in ranges
        if each.old and each.past_rows
    ]
    return " + ".join(counts) or "0"
