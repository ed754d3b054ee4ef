"""What the demo checks for itself: orders shown without their lines, and how fresh each report is."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import psycopg
from psycopg import sql

from pytrickle.database import filled
from pytrickle.demo.reports import MODES, report_name

# One statement, hence one snapshot for all three reports.
REPORT = """
SELECT {mode}, count(*), count(*) FILTER (WHERE line_total <> order_total), clock_timestamp() - max(placed_at)
FROM {report}
"""
OBSERVE = sql.SQL(" UNION ALL ").join(
    filled(REPORT, mode=sql.Literal(mode), report=report_name(mode)) for mode in MODES
)


@dataclass(frozen=True, slots=True)
class Observation:
    """One look at one report: the orders shown, those among them without all their lines, the newest order's age."""

    shown: int
    incomplete: int
    age: timedelta | None


@dataclass(frozen=True, slots=True)
class Tally:
    """All looks at one report so far."""

    looks: int = 0
    looks_incomplete: int = 0
    worst: int = 0
    last: Observation = Observation(0, 0, None)
    aged: int = 0
    total_age: timedelta = timedelta(0)

    def plus(self, seen: Observation) -> "Tally":
        """Return the tally with one more look counted."""
        return Tally(
            looks=self.looks + 1,
            looks_incomplete=self.looks_incomplete + (seen.incomplete > 0),
            worst=max(self.worst, seen.incomplete),
            last=seen,
            aged=self.aged + (seen.age is not None),
            total_age=self.total_age + (seen.age or timedelta(0)),
        )

    @property
    def mean_age(self) -> timedelta | None:
        """Return the mean age of the newest order shown, over the looks that saw an order."""
        return self.total_age / self.aged if self.aged else None


class Observer:
    """Looks at the reports over a connection of its own and keeps one tally for each; usable from several threads."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._tallies = {mode: Tally() for mode in MODES}

    def look(self) -> None:
        """Look at all three reports, in one snapshot."""
        with self._lock:
            for mode, shown, incomplete, age in self._connection.execute(OBSERVE):
                self._tallies[mode] = self._tallies[mode].plus(Observation(shown, incomplete, age))

    def tallies(self) -> Mapping[str, Tally]:
        """Return the tally of each report, by its watermark gating."""
        with self._lock:
            return dict(self._tallies)


def proves_nothing_yet(tallies: Mapping[str, Tally]) -> bool:
    """Whether something has not been seen yet without which the demo proves nothing."""
    return any(_lacking(tallies))


def _lacking(tallies: Mapping[str, Tally]) -> Iterator[str]:
    for mode, tally in tallies.items():
        if tally.last.shown == 0:
            yield f"report_{mode} showed no order, so it proves nothing"
    if not tallies["none"].worst:
        yield "report_none never showed an order without its lines, so the others prove nothing"


def broken_promises(
    tallies: Mapping[str, Tally], verified: Mapping[str, bool], failures: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return one sentence for each thing that should have held and did not; the demo succeeded iff there is none.

    `failures` says of each failed refresh which it was and why.
    """
    broken = [f"the refresh of {failure}" for failure in failures] + [*_lacking(tallies)]
    for mode, tally in tallies.items():
        if mode != "none" and tally.worst:
            broken.append(f"report_{mode} showed up to {tally.worst} orders without their lines")
    broken += [f"report_{mode} differs from its defining query" for mode, matches in verified.items() if not matches]
    return tuple(broken)
