"""The gating decision of one stream table, made in SQL and read here as a value."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from json import dumps
from typing import Any

from pytrickle.cut import Cut
from pytrickle.progress import Progress

NOTHING_NEW = dumps({})


@dataclass(frozen=True, slots=True)
class Decision:
    """What `pgtrickle.gating_decision` says: `decision` is run, gated or waiting; `caps` are cuts by source oid.

    `deadline_passed`: it may run although the watermarks disagree, since it has waited for its gate_deadline.
    `let_through` is JSON: how far each watermark group agrees that got farther since it last let the table through.
    """

    gating: str
    decision: str
    reason: str
    waiting_for: str | None
    effective_watermark: datetime | None
    caps: Mapping[int, Cut]
    deadline_passed: bool = False
    effective_batch: int | None = None
    let_through: str = NOTHING_NEW

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Decision":
        """Read a row of the SQL function."""
        caps = {int(relid): Cut.from_json(cut) for relid, cut in (row["caps"] or {}).items()}
        return cls(
            row["gating"],
            row["decision"],
            row["reason"] or "",
            row["waiting_for"],
            row["effective_watermark"],
            caps,
            row["deadline_passed"],
            row["effective_batch"],
            dumps(row["let_through"]),
        )

    @property
    def effective(self) -> Progress:
        """How far the stream table will be complete."""
        return Progress(self.effective_watermark, self.effective_batch)

    @property
    def gated(self) -> bool:
        """Whether the stream table is behind a gate, passed or not."""
        return self.decision == "gated" or self.deadline_passed

    def explained(self, reason: str) -> str:
        """Add to the reason of a refresh that it runs only because its deadline passed."""
        return f"{self.reason}; {reason}" if self.deadline_passed else reason


def blocks(decision: Decision, respect_gate: bool) -> bool:
    """Whether a refresh must be skipped; a manual refresh may pass a gate, never a wait for a cut.

    >>> waiting = Decision("hold_back", "waiting", "no cut yet", "public.orders", None, {})
    >>> blocks(waiting, respect_gate=False)
    True
    """
    return decision.decision == "waiting" or (decision.decision == "gated" and respect_gate)
