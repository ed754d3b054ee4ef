"""What is measured of one refresh while it is under way: how long each phase takes, how large the computed rows are."""

from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from psycopg.types.json import Jsonb

from pytrickle.catalog.definition import Came
from pytrickle.plan.refresh_plan import RefreshPlan

PLAN, COMPUTE, WAIT, APPLY = "plan", "compute", "wait", "apply"
# Of planning, what the next refresh like this one need not do: compiling, or asking about, both ways to compare them.
CHOOSE = "choose"


@dataclass(slots=True)
class Measures:
    """Seconds by phase, of which one is always running; `staged_bytes` is None where Spark wrote the rows to a table.

    A refresh plans first, then computes rows, waits where others are committed together with it, and applies them.
    `gave_up` are the seconds after which the other way was given up, None where it was not tried.
    """

    started: float = field(default_factory=monotonic)
    phase: str = PLAN
    entered: float = field(default_factory=monotonic)
    seconds: dict[str, float] = field(default_factory=dict)
    staged_bytes: int | None = None
    gave_up: float | None = None

    def enter(self, phase: str) -> None:
        """End the phase that is running, and begin another one."""
        now = monotonic()
        self.seconds[self.phase] = self.seconds.get(self.phase, 0.0) + now - self.entered
        self.phase, self.entered = phase, now

    def milliseconds(self) -> dict[str, float]:
        """Return how long each phase took until now.

        >>> measures = Measures()
        >>> measures.enter(APPLY)
        >>> list(measures.milliseconds())
        ['plan', 'apply']
        """
        self.enter(self.phase)
        return {phase: round(1000 * seconds, 3) for phase, seconds in self.seconds.items()}

    def of_its_own(self) -> float:
        """Return the seconds until now that a refresh like it takes again: neither waiting nor comparing two ways.

        >>> measures = Measures(seconds={PLAN: 1.0, CHOOSE: 2.0, COMPUTE: 4.0, WAIT: 8.0})
        >>> round(measures.of_its_own())
        5
        """
        self.enter(self.phase)
        return sum(seconds for phase, seconds in self.seconds.items() if phase not in (CHOOSE, WAIT))

    def choosing(self, seconds: float) -> None:
        """Count so many seconds of what was spent on planning as spent on comparing two ways.

        >>> measures = Measures(seconds={PLAN: 3.0}, phase=COMPUTE)
        >>> measures.choosing(2.0)
        >>> measures.seconds[PLAN], measures.seconds[CHOOSE]
        (1.0, 2.0)
        """
        if seconds:
            self.seconds[PLAN] = max(self.seconds.get(PLAN, 0.0) - seconds, 0.0)
            self.seconds[CHOOSE] = self.seconds.get(CHOOSE, 0.0) + seconds

    def given_up(self, limit: float | None) -> None:
        """Count all until now as spent on choosing, for the refresh begins again after so many seconds of one way.

        Without a limit it says nothing of how long the next refresh like it takes.

        >>> measures = Measures(seconds={PLAN: 1.0, COMPUTE: 2.0}, phase=COMPUTE)
        >>> measures.given_up(1.5)
        >>> list(measures.seconds), measures.phase, measures.gave_up
        (['choose'], 'plan', 1.5)
        """
        self.gave_up = limit
        self.enter(PLAN)
        self.seconds = {CHOOSE: sum(self.seconds.values())}


def measured(measures: Measures, plan: RefreshPlan) -> dict[str, Any]:
    """Return what enters the history of it: `chained` says that changes may have come through other stream tables."""
    came = Came.together(change_range.came for change_range in plan.ranges)
    return {
        "phases": Jsonb(measures.milliseconds()),
        "staged_bytes": measures.staged_bytes,
        "gave_up_ms": None if measures.gave_up is None else 1000 * measures.gave_up,
        "oldest_change_at": came.oldest if came else None,
        "newest_change_at": came.newest if came else None,
        "change_clock": came and ("commit" if came.by_commit else "capture"),
        "chained": any(source.kind == "STREAM_TABLE" for source in plan.shape.definition.sources),
    }
