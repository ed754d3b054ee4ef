"""The options of a stream table on the command line; named as the client and the SQL functions name them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, cast

import typer

from pytrickle.catalog.options import Options
from pytrickle.cli.values import duration


class RefreshMode(StrEnum):
    """How a stream table may be refreshed."""

    AUTO = "AUTO"
    DIFFERENTIAL = "DIFFERENTIAL"
    FULL = "FULL"


class Gating(StrEnum):
    """What a stream table does while the watermarks of its sources disagree."""

    AUTO = "auto"
    NONE = "none"
    GATE = "gate"
    HOLD_BACK = "hold_back"


class Tier(StrEnum):
    """By which factor a schedule is stretched."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"
    FROZEN = "frozen"


class DiamondConsistency(StrEnum):
    """Whether what is read through two ways is committed together."""

    ATOMIC = "atomic"
    NONE = "none"


class OutputMode(StrEnum):
    """What a stream table shows, and when."""

    UPDATE = "update"
    APPEND = "append"
    COMPLETE = "complete"


class DiamondSchedulePolicy(StrEnum):
    """Which member of an atomic diamond makes it due."""

    FASTEST = "fastest"
    SLOWEST = "slowest"


Schedule = Annotated[
    str | None,
    typer.Option(
        "--schedule",
        help="When it is due: 'calculated' (whenever its sources changed), '5m', or cron such as '0 6 * * mon-fri'.",
    ),
]
Timezone = Annotated[str | None, typer.Option("--schedule-timezone", help="Time zone of a cron schedule.")]
TierName = Annotated[
    Tier | None,
    typer.Option("--tier", case_sensitive=False, help="Stretch the schedule: twofold, tenfold, for ever."),
]
Mode = Annotated[RefreshMode | None, typer.Option("--refresh-mode", case_sensitive=False, help="How to refresh it.")]
GatingMode = Annotated[
    Gating | None,
    typer.Option(
        "--watermark-gating",
        case_sensitive=False,
        help="While watermarks disagree: gate waits, hold_back reads the newest state they agree on, none reads all.",
    ),
]
Require = Annotated[
    bool | None,
    typer.Option(
        "--require-watermark/--no-require-watermark",
        help="Whether to wait for sources that never advanced their watermark.",
    ),
]
Tolerance = Annotated[
    timedelta | None,
    typer.Option("--watermark-tolerance", parser=duration, help="Instead of the tolerance of its watermark groups."),
]
BatchTolerance = Annotated[
    int | None,
    typer.Option("--batch-tolerance", min=0, help="The same for its groups that go by batch numbers."),
]
Deadline = Annotated[
    timedelta | None,
    typer.Option("--gate-deadline", parser=duration, help="Refresh anyway after so long behind a shut gate."),
]
Consistency = Annotated[
    DiamondConsistency | None,
    typer.Option("--diamond-consistency", help="Commit what it reads through two ways together with it (atomic)."),
]
Policy = Annotated[
    DiamondSchedulePolicy | None,
    typer.Option("--diamond-schedule-policy", help="Which member makes an atomic diamond due."),
]
Ceiling = Annotated[
    int | None, typer.Option("--fuse-ceiling", min=1, help="Hold a delta of more rows than this for a decision.")
]
Circular = Annotated[
    bool | None,
    typer.Option("--allow-circular/--no-allow-circular", help="Whether it may read itself, also through others."),
]
Rounds = Annotated[
    int | None,
    typer.Option("--max-fixpoint-iterations", min=1, help="Fail after so many rounds without a fixed point."),
]
Retention = Annotated[
    timedelta | None,
    typer.Option("--watermark-retention", parser=duration, help="Keep what reading as of earlier watermarks takes."),
]
Timeout = Annotated[
    timedelta | None,
    typer.Option("--statement-timeout", parser=duration, help="Fail a refresh of which a statement runs for longer."),
]
Output = Annotated[
    OutputMode | None,
    typer.Option(
        "--output-mode",
        case_sensitive=False,
        help="append: show rows once, when their window is closed (--window-end).",
    ),
]
WindowEnd = Annotated[
    str | None, typer.Option("--window-end", metavar="COLUMN", help="Which column says when the window of a row ends.")
]
Reset = Annotated[
    list[str] | None, typer.Option("--reset", metavar="OPTION", help="Give an option its default again; repeatable.")
]


def given(arguments: Mapping[str, Any]) -> Options:
    """Return those options among a command's arguments that were given."""
    found = {name: arguments[name] for name in Options.__annotations__ if arguments.get(name) is not None}
    return cast(Options, {name: value.value if isinstance(value, StrEnum) else value for name, value in found.items()})
