"""What stops a refresh before it begins, and which failure is worth another way."""

from datetime import datetime

from pytrickle.catalog.stream_table import StreamTable
from pytrickle.errors import Defect, EvaluationFailed, FuseBlown, PytrickleError


def respect_fuse(table: StreamTable, delta_rows: int) -> None:
    """Raise FuseBlown for a delta above the ceiling, unless it was let pass: that is stored as -infinity."""
    passed = table.fuse_blown_at is not None and table.fuse_blown_at.year == datetime.min.year
    guarded = table.fuse_ceiling is not None and table.populated and not table.reinitialize_reason and not passed
    if guarded and delta_rows > (table.fuse_ceiling or 0):
        raise FuseBlown(f"{delta_rows} changed rows are more than the fuse of {table.fuse_ceiling} lets pass.")


def is_worth_another_way(table: StreamTable, error: PytrickleError) -> bool:
    """Whether the planner failed, or an expression did, perhaps on rows that the query as it is written never
    evaluates.

    The terms of a delta evaluate rows that come together with rows that go, and an antijoin evaluates all rows before
    it takes some away.
    """
    about_values = isinstance(error, EvaluationFailed) or (error.sqlstate or "")[:2] in {"21", "22"}
    return table.refresh_mode != "FULL" and (about_values or isinstance(error, Defect))
