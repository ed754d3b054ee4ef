"""The options of a stream table, as create_ and alter_stream_table take them in Python and in SQL."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TypedDict

from psycopg import sql

from pytrickle.errors import InvalidArgument


class Options(TypedDict, total=False):
    """What may be set for a stream table; the names and the meanings are those of the SQL functions.

    `schedule` is ``calculated`` (whenever a source changed), a duration such as ``5m``, or a cron expression in
    `schedule_timezone`; `tier` (hot, warm, cold, frozen) stretches it. `refresh_mode` is AUTO, DIFFERENTIAL or FULL.
    `watermark_gating` is auto, none, gate or hold_back; `require_watermark` waits for sources that never advanced,
    `watermark_tolerance` and `batch_tolerance` replace the tolerance of groups that go by event time and by batch
    numbers, after `gate_deadline` a gated table refreshes anyway.
    `diamond_consistency` (atomic, none) and `diamond_schedule_policy` (fastest, slowest) concern what is read through
    two ways; a delta of more than `fuse_ceiling` rows is held for a decision. With `allow_circular` it may read itself,
    through others that allow it too; such a cycle fails after `max_fixpoint_iterations` rounds without a fixed point.
    Watermarks that were the newest within `watermark_retention` can be read back. A refresh fails when one of its
    statements runs for longer than `statement_timeout`. At creation only: `output_mode`
    (update, append, complete) and, for append, `window_end`, the column that says when the window of a row ends.
    """

    schedule: str | timedelta
    schedule_timezone: str
    refresh_mode: str
    watermark_gating: str
    require_watermark: bool
    tier: str
    watermark_tolerance: timedelta | str
    batch_tolerance: int
    gate_deadline: timedelta | str
    diamond_consistency: str
    diamond_schedule_policy: str
    fuse_ceiling: int
    allow_circular: bool
    max_fixpoint_iterations: int
    watermark_retention: timedelta | str
    statement_timeout: timedelta | str
    output_mode: str
    window_end: str


AT_CREATION = {"output_mode", "window_end"}
INTERVALS = {"watermark_tolerance", "gate_deadline", "watermark_retention", "statement_timeout"}


def call(
    function: str, arguments: Mapping[str, object], options: Mapping[str, object]
) -> tuple[sql.Composed, list[object]]:
    """Return a call of a pgtrickle function with named arguments, and its parameters; raise InvalidArgument.

    Options that are None count as not given.
    """
    if strangers := sorted(set(options) - set(Options.__annotations__)):
        known = ", ".join(sorted(Options.__annotations__))
        raise InvalidArgument(f"A stream table has no option {strangers[0]!r}.", f"The options are {known}.")
    if function == "alter_stream_table" and (fixed := sorted(AT_CREATION & set(options))):
        raise InvalidArgument(f"{fixed[0]} is chosen when a stream table is created.", "Drop it and create it anew.")
    given = {**arguments, **{name: value for name, value in options.items() if value is not None}}
    named = [sql.SQL("{} => {}").format(sql.Identifier(name), _placeholder(name)) for name in given]
    text = sql.SQL("SELECT {}({})").format(sql.Identifier("pgtrickle", function), sql.SQL(", ").join(named))
    return text, [_written(value) for value in given.values()]


def _placeholder(name: str) -> sql.Composable:
    if name in INTERVALS:
        return sql.SQL("%s::interval")
    return sql.SQL("%s::pg_catalog.text[]" if name == "reset" else "%s")


def _written(value: object) -> object:
    if isinstance(value, timedelta):
        return f"{value.total_seconds():f} seconds"
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
