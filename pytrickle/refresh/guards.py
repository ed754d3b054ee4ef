"""What a refresh refuses to do before somebody decides, and which failure is worth another way."""

from datetime import datetime
from shlex import quote

from pytrickle.catalog.stream_table import StreamTable
from pytrickle.errors import Defect, EvaluationFailed, FuseBlown, PytrickleError, WouldRecompute
from pytrickle.plan.apply_plan import Action
from pytrickle.sql_name import sql_text


def refuse_recomputing(table: StreamTable, action: Action, reason: str) -> None:
    """Raise WouldRecompute where a refresh is whole that must not be: a first load may, and what was asked for."""
    if not (table.strict and table.populated) or action is Action.DIFFERENTIAL or table.recomputation_asked:
        return
    raise WouldRecompute(
        f"{table.name} would be computed anew ({reason}), which its refresh mode DIFFERENTIAL_STRICT forbids.",
        f"To have it computed anew once: pytrickle refresh {quote(table.name)} --full, or SELECT"
        f" pgtrickle.reinitialize_stream_table({sql_text(table.name)}).",
        attempted=action.value,
    )


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
    return not table.strict and table.refresh_mode != "FULL" and (about_values or isinstance(error, Defect))
