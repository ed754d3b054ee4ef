"""The options of a stream table, as create_ and alter_stream_table take them in Python and in SQL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, TypedDict, get_type_hints

from psycopg import sql

from pytrickle.config import EngineName
from pytrickle.database import filled, function_call
from pytrickle.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Option:
    """What is said of an option where it is declared: its help on the command line, and which values it takes.

    Those are `choices`, numbers from `least` to `most`, or with `interval` lengths of time. In the help `metavar`
    stands for a value. `at_creation` says that it cannot be altered.
    """

    help: str
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    interval: bool = False
    metavar: str | None = None
    at_creation: bool = False


class Options(TypedDict, total=False):
    """What may be set for a stream table; the names and the meanings are those of the SQL functions.

    - `schedule` is ``calculated`` (whenever a source changed), a duration such as ``5m``, or a cron expression in
      `schedule_timezone`; `tier` (hot, warm, cold, frozen) stretches it.
    - `refresh_mode` is AUTO, DIFFERENTIAL, DIFFERENTIAL_STRICT (which fails rather than compute it anew) or FULL.
      `engine` (auto, spark, postgres) says who computes it; auto is whoever the refresher chooses.
    - `watermark_gating` is auto, none, gate or hold_back. `require_watermark` waits for sources that never advanced.
      `watermark_tolerance` and `batch_tolerance` replace the tolerance of groups that go by event time and by batch
      numbers. After `gate_deadline` a gated table refreshes anyway.
    - `diamond_consistency` (atomic, none) and `diamond_schedule_policy` (fastest, slowest) concern what is read through
      two ways.
    - A delta of more than `fuse_ceiling` rows is held for a decision.
    - With `allow_circular` it may read itself, through others that allow it too; such a cycle fails after
      `max_fixpoint_iterations` rounds without a fixed point.
    - Watermarks that were the newest within `watermark_retention` can be read back.
    - A refresh fails when one of its statements runs for longer than `statement_timeout`.
    - Rows older than `frozen_after` below the effective watermark never change again; what would have changed them is
      in the ledger of late changes.
    - Under `output_mode` append, after nothing came from any source for `close_after_idle`, windows close by the clock.
    - At creation only: `output_mode` (update, append, complete) and `window_end`, the column that says when the window
      of a row ends, for append and for `frozen_after`.
    """

    schedule: Annotated[
        str | timedelta,
        Option("When it is due: 'calculated' (whenever its sources changed), '5m', or cron such as '0 6 * * mon-fri'."),
    ]
    schedule_timezone: Annotated[str, Option("Time zone of a cron schedule.")]
    tier: Annotated[
        str, Option("Stretch the schedule: twofold, tenfold, for ever.", choices=("hot", "warm", "cold", "frozen"))
    ]
    refresh_mode: Annotated[
        str,
        Option(
            "How to refresh it; DIFFERENTIAL_STRICT fails rather than compute it anew.",
            choices=("AUTO", "DIFFERENTIAL", "DIFFERENTIAL_STRICT", "FULL"),
        ),
    ]
    watermark_gating: Annotated[
        str,
        Option(
            "While watermarks disagree: gate waits, hold_back reads the newest state they agree on, none reads all.",
            choices=("auto", "none", "gate", "hold_back"),
        ),
    ]
    require_watermark: Annotated[bool, Option("Whether to wait for sources that never advanced their watermark.")]
    watermark_tolerance: Annotated[
        timedelta | str, Option("Instead of the tolerance of its watermark groups.", interval=True)
    ]
    batch_tolerance: Annotated[int, Option("The same for its groups that go by batch numbers.", least=0)]
    gate_deadline: Annotated[timedelta | str, Option("Refresh anyway after so long behind a shut gate.", interval=True)]
    diamond_consistency: Annotated[
        str, Option("Commit what it reads through two ways together with it (atomic).", choices=("atomic", "none"))
    ]
    diamond_schedule_policy: Annotated[
        str, Option("Which member makes an atomic diamond due.", choices=("fastest", "slowest"))
    ]
    fuse_ceiling: Annotated[int, Option("Hold a delta of more rows than this for a decision.", least=1)]
    allow_circular: Annotated[bool, Option("Whether it may read itself, also through others.")]
    max_fixpoint_iterations: Annotated[
        int, Option("Fail after so many rounds without a fixed point.", least=1, most=2**31 - 1)
    ]
    watermark_retention: Annotated[
        timedelta | str, Option("Keep what is needed to read as of watermarks this old.", interval=True)
    ]
    statement_timeout: Annotated[
        timedelta | str, Option("Fail a refresh when one of its statements runs for longer.", interval=True)
    ]
    engine: Annotated[
        str,
        Option(
            "Who computes it; auto: whoever the refresher chooses.",
            choices=tuple(EngineName),
        ),
    ]
    frozen_after: Annotated[
        timedelta | str,
        Option("Never change rows again that are so much older than the effective watermark.", interval=True),
    ]
    close_after_idle: Annotated[
        timedelta | str, Option("Close windows by the clock after so long without anything new.", interval=True)
    ]
    output_mode: Annotated[
        str,
        Option(
            "append: show rows once, when their window is closed (--window-end).",
            choices=("update", "append", "complete"),
            at_creation=True,
        ),
    ]
    window_end: Annotated[
        str, Option("Which column says when the window of a row ends.", metavar="COLUMN", at_creation=True)
    ]


DECLARED: Mapping[str, tuple[object, Option]] = {
    name: (hint.__origin__, hint.__metadata__[0]) for name, hint in get_type_hints(Options, include_extras=True).items()
}


def call(
    function: str, arguments: Mapping[str, object], options: Mapping[str, object]
) -> tuple[sql.Composed, list[object]]:
    """Return a call of a pgtrickle function with named arguments, and its parameters; raise InvalidArgument.

    Options that are None count as not given.
    """
    if strangers := sorted(set(options) - set(DECLARED)):
        known = ", ".join(sorted(DECLARED))
        raise InvalidArgument(f"A stream table has no option {strangers[0]!r}.", f"The options are {known}.")
    if function == "alter_stream_table" and (
        fixed := sorted(name for name in options if DECLARED[name][1].at_creation)
    ):
        raise InvalidArgument(f"{fixed[0]} is chosen when a stream table is created.", "Drop it and create it anew.")
    given = {**arguments, **{name: value for name, value in options.items() if value is not None}}
    named = [filled("{name} => {value}", name=sql.Identifier(name), value=_placeholder(name)) for name in given]
    text = function_call(function, named)
    return text, [_written(value) for value in given.values()]


def _placeholder(name: str) -> sql.Composable:
    if name in DECLARED and DECLARED[name][1].interval:
        return sql.SQL("%s::interval")
    return sql.SQL("%s::pg_catalog.text[]" if name == "reset" else "%s")


def _written(value: object) -> object:
    if isinstance(value, timedelta):
        return f"{value.total_seconds():f} seconds"
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
