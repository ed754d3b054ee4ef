"""Frozen values for how far stream tables are behind, and for the limits beyond which an alert is raised."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pytrickle.readable import Readable

CAUSES = ("watermark", "gate", "schedule", "queue", "refresh", "inherited", "stopped")


@dataclass(frozen=True, slots=True, repr=False)
class FreshnessRow(Readable):
    """How far one stream table is behind its sources, and why, as ``pgtrickle.freshness()`` reports it.

    `status` is ``fresh`` where it shows all that its sources have, however long ago they changed; ``behind``, ``late``
    beyond its `target`, or ``unfilled``. `lag` is the time since the oldest change came that it does not show, and the
    sum of the seven intervals from `waiting_for_watermark` to `stopped`. `cause` is the longest of them: watermark,
    gate, schedule, queue, refresh, inherited or stopped; `culprit` names who is to blame. `clock` says how
    `behind_since` is known: commit, capture, refresh or creation. `p50`, `p95` and `p99` tell how soon the oldest
    change was visible in its last 100 refreshes.
    """

    pgt_id: int
    stream_table: str
    status: str
    lag: timedelta
    behind_since: datetime | None
    clock: str | None
    waiting_for_watermark: timedelta
    at_gate: timedelta
    before_schedule: timedelta
    in_queue: timedelta
    in_refresh: timedelta
    inherited: timedelta
    stopped: timedelta
    cause: str | None
    culprit: str | None
    reason: str
    target: timedelta | None = None
    p50: timedelta | None = None
    p95: timedelta | None = None
    p99: timedelta | None = None

    @property
    def parts(self) -> dict[str, timedelta]:
        """The lag by cause."""
        spent = (self.waiting_for_watermark, self.at_gate, self.before_schedule, self.in_queue)
        return dict(zip(CAUSES, (*spent, self.in_refresh, self.inherited, self.stopped), strict=True))


@dataclass(frozen=True, slots=True, repr=False)
class AlertLimitsRow(Readable):
    """Limits beyond which an alert is raised, as ``pgtrickle.alert_limits()`` reports them; None is no limit.

    They are those of a source, of a watermark group, or, with neither, of all that have none of their own.
    """

    source: str | None
    group_name: str | None
    lag: timedelta | None
    late_share: float | None
    rate: float | None
    idle_share: float | None
