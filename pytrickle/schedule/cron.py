"""The moments of a cron schedule in its time zone."""

import re
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim

from pytrickle.errors import ConfigError

# A range of one value with a step, which CronSim takes for that value and all that the step reaches from it.
SINGLE = re.compile(r"(?<![\w-])(\w+)-\1/\d+")


def nth_moment(expression: str, time_zone: str, after: datetime, nth: int = 1) -> datetime:
    """Return the nth moment, strictly after another, at which a cron expression of five or six fields fires.

    As in Debian's cron: where the clock is put forward, a moment that does not exist fires at the first one that does;
    where it is put back, a moment that occurs twice fires the first time. If the minutes or the hours begin with a
    star, or the expression begins with seconds, the clock's face is matched as it is shown: what is skipped does not
    fire, what is repeated does so again.
    Raises ConfigError if this machine does not know the time zone.

    >>> nth_moment("30 2 * * *", "Europe/Berlin", datetime(2026, 3, 28, 12, tzinfo=UTC)).isoformat()
    '2026-03-29T03:00:00+02:00'
    >>> nth_moment("*/10 30 2 * * *", "UTC", datetime(2026, 3, 28, 2, 30, 1, tzinfo=UTC)).isoformat()
    '2026-03-28T02:30:10+00:00'
    """
    moments = CronSim(SINGLE.sub(r"\1", expression), after.astimezone(_zone(time_zone)))
    # Right after the clock was put back, an expression that fires once may begin with what it did in the first pass.
    later = (moment for moment in moments if moment.astimezone(UTC) > after)
    return next(islice(later, nth - 1, None))


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ConfigError(
            f"This machine does not know the time zone {name}.",
            "Upgrade the package tzdata, or alter schedule_timezone.",
        ) from error
