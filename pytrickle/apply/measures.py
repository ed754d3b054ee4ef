"""What is measured of one refresh while it is under way: how long each phase takes, how large the computed rows are."""

from dataclasses import dataclass, field
from time import monotonic

PLAN, COMPUTE, WAIT, APPLY = "plan", "compute", "wait", "apply"


@dataclass(slots=True)
class Measures:
    """Seconds by phase, of which one is always running; `staged_bytes` is None where Spark wrote the rows to a table.

    A refresh plans first, then computes rows, waits where others are committed together with it, and applies them.
    """

    phase: str = PLAN
    entered: float = field(default_factory=monotonic)
    seconds: dict[str, float] = field(default_factory=dict)
    staged_bytes: int | None = None

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
