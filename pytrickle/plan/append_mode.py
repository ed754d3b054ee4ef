"""The end of a window, which output mode append needs to know of every row and of every group."""

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.sql.dialect import parse_query


def shown_by_keys(shape: Analysis) -> dict[str, str]:
    """Return the output columns that the keys of a group alone determine: expressions over the alias g, by name."""
    if shape.grouped is None:
        return {}
    keys = set(shape.grouped.keys)
    return {name: text for name, text in shape.grouped.aggregate.output if _columns(text) <= keys}


def end_key(shape: Analysis, column: str) -> str | None:
    """Return the key of a group that is the end of its window, or None where that is only computed from keys."""
    shown = shape.grouped.aggregate.shown_keys if shape.grouped else ()
    return next((key for key, name in shown if name == column), None)


def check_append(shape: Analysis, column: str) -> None:
    """Raise NotDifferentiable unless every row can be emitted once, when the window that `column` ends is closed."""
    if shape.query is None:
        raise NotDifferentiable(f"Output mode append needs a delta rule: {shape.full_reason}.")
    if shape.query.top is not None:
        raise NotDifferentiable(
            "Output mode append emits rows for good, but those that LIMIT shows give way to others."
        )
    if shape.grouped is not None and column not in shown_by_keys(shape):
        hint = f"Group by {column}, or compute it from what the query groups by."
        raise NotDifferentiable(f"The end of a window, {column}, must be known of a group before its rows are.", hint)


def _columns(text: str) -> set[str]:
    return {column.name for column in parse_query(f"SELECT {text}").find_all(exp.Column)}
