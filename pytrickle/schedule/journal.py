"""What a refresher that runs for days tells by `logging`: one record for each event, nothing where nothing happened."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from logging import DEBUG, ERROR, INFO, WARNING, getLogger
from time import monotonic

from pytrickle.durations import length
from pytrickle.errors import PytrickleError
from pytrickle.readable import counted, ended
from pytrickle.refresh.values import RefreshResult

# The names by which users choose what they want to read; docs/howto/operate.md lists them.
RUN = getLogger("pytrickle.run")
REFRESH = getLogger("pytrickle.refresh")

LEVELS = {"NO_DATA": DEBUG, "SKIP": INFO, "FAILED": ERROR}


@dataclass(frozen=True, slots=True)
class Statistics:
    """What was done in the time since the last such summary; `slowest` names the stream table that took `longest`."""

    period: timedelta
    ticks: int
    at_work: timedelta
    refreshes: dict[str, int]
    rows_inserted: int
    rows_deleted: int
    failures: int
    slowest: str | None
    longest: timedelta

    def __str__(self) -> str:
        done = ", ".join(f"{number} {action}" for action, number in sorted(self.refreshes.items())) or "no refresh"
        slowest = f", the longest {length(self.longest)} ({self.slowest})" if self.slowest else ""
        return (
            f"In {length(self.period)}: {counted(self.ticks, 'tick')}, {done}, "
            f"+{self.rows_inserted} -{self.rows_deleted} rows, {self.failures} failed, "
            f"{length(self.at_work)} at work{slowest}."
        )


@dataclass(slots=True)
class Journal:
    """Logs what happens, and `every` so often a summary; what repeats is said when it begins and when it ends.

    The callbacks are told everything, also what is no event.
    """

    every: timedelta | None = None
    on_result: Callable[[RefreshResult], None] | None = None
    on_error: Callable[[PytrickleError], None] | None = None
    on_leader: Callable[[bool], None] | None = None
    clock: Callable[[], float] = monotonic
    skips: dict[str, str] = field(default_factory=dict)
    leads: bool | None = None
    out_since: float | None = None
    causes: set[str] = field(default_factory=set)
    begun: float = 0.0
    results: list[RefreshResult] = field(default_factory=list)
    ticks: int = 0
    at_work: float = 0.0

    def lead(self, leads: bool) -> None:
        """Note which of several refreshers this one is from now on."""
        if self.on_leader:
            self.on_leader(leads)
        if not leads:
            self._end_outage()
        if leads is self.leads:
            return
        self.leads = leads
        self._begin_period()
        RUN.info("Refreshing." if leads else "Another refresher leads; standing by to take over.")

    def result(self, result: RefreshResult) -> None:
        """Note what came of a stream table: an event unless it had no changes, or is skipped as it was before."""
        if self.on_result:
            self.on_result(result)
        known = self.skips.pop(result.stream_table, None)
        level = LEVELS.get(result.action, INFO)
        if result.action == "SKIP":
            self.skips[result.stream_table] = result.reason
            level = DEBUG if known == result.reason else INFO
        if self.every is not None and result.action not in ("NO_DATA", "SKIP"):
            self.results.append(result)
        REFRESH.log(level, told(result), extra={"event": result})

    def trouble(self, error: PytrickleError) -> None:
        """Note an error that is waited out: an event when an outage begins, and when another cause lets it last."""
        if self.on_error:
            self.on_error(error)
        level = DEBUG if str(error) in self.causes else WARNING
        self.causes.add(str(error))
        self.out_since = self.clock() if self.out_since is None else self.out_since
        RUN.log(level, "%s Trying again until that is over.", ended(str(error)), extra={"event": {"error": error.kind}})

    def tick(self, tick: Callable[[Callable[[RefreshResult], None]], object]) -> None:
        """Do a tick and note what comes of it; that it was done ends an outage. Tell what was done if it is time."""
        began = self.clock()
        tick(self.result)
        self._end_outage()
        self.ticks, self.at_work = self.ticks + 1, self.at_work + self.clock() - began
        if self.every is not None and self.clock() - self.begun >= self.every.total_seconds():
            summary = self._summary()
            RUN.info(str(summary), extra={"event": summary})
            self._begin_period()

    def _end_outage(self) -> None:
        if self.out_since is not None:
            RUN.info("It is over after %s.", length(timedelta(seconds=round(self.clock() - self.out_since, 1))))
            self.out_since = None
            self.causes.clear()

    def _begin_period(self) -> None:
        self.begun, self.ticks, self.at_work = self.clock(), 0, 0.0
        self.results.clear()

    def _summary(self) -> Statistics:
        done = [result for result in self.results if result.action != "FAILED"]
        slowest = max(done, key=lambda result: result.duration, default=None)
        return Statistics(
            timedelta(seconds=round(self.clock() - self.begun)),
            self.ticks,
            timedelta(seconds=round(self.at_work, 1)),
            dict(Counter(result.action for result in done)),
            sum(result.rows_inserted for result in done),
            sum(result.rows_deleted for result in done),
            len(self.results) - len(done),
            slowest.stream_table if slowest else None,
            slowest.duration if slowest else timedelta(0),
        )


def told(result: RefreshResult) -> str:
    """Say in one line what came of a stream table."""
    rows = f" +{result.rows_inserted} -{result.rows_deleted}" if result.rows_inserted or result.rows_deleted else ""
    took = f" in {length(result.duration)}" if result.duration else ""
    engine = f" by {result.engine}" if result.engine else ""
    return f"{result.stream_table} {result.action}{rows}{took}{engine}: {result.error or result.reason}"
