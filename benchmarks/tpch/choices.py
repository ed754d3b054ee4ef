"""How well AUTO chooses: each query as three stream tables, of which two may not choose, refreshed side by side."""

from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.clock import stopwatch
from benchmarks.tpch.database import Database
from benchmarks.tpch.queries import Query
from pytrickle.client.client import Client

MODES = ("AUTO", "DIFFERENTIAL", "FULL")


@dataclass(frozen=True, slots=True)
class Round:
    """One round of one query: what AUTO did and why, and the seconds of each refresh mode and of the view."""

    query: str
    percent: float
    number: int
    action: str
    reason: str
    seconds: dict[str, float]
    view: float

    @property
    def best(self) -> float:
        """Return the seconds of the better of the two modes that have no choice."""
        return min(self.seconds["DIFFERENTIAL"], self.seconds["FULL"])

    @property
    def way(self) -> float:
        """Return how many times longer the way that AUTO chose took, in the mode that has no other."""
        return self.seconds["FULL" if self.action == "FULL" else "DIFFERENTIAL"] / self.best

    @property
    def taken(self) -> float:
        """Return how many times longer AUTO itself took, its choice included."""
        return self.seconds["AUTO"] / self.best

    @property
    def lost(self) -> float:
        """Return how many seconds longer it took."""
        return self.seconds["AUTO"] - self.best


@dataclass(slots=True)
class Choices:
    """Measures the choices on one database; every round counts, from the first after the load on."""

    database: Database
    client: Client
    queries: tuple[Query, ...]
    report: Callable[[str], None]
    rounds: list[Round] = field(default_factory=list)
    unequal: set[str] = field(default_factory=set)

    def create(self) -> None:
        """Create and load the stream tables of every query, and its materialized view."""
        for query in self.queries:
            self.report(f"Loading {query.title} …")
            query.create_view(self.database.connection)
            for mode in MODES:
                self.client.create_stream_table(named(query, mode), query.text, refresh_mode=mode)
                self.client.refresh(named(query, mode))

    def measure(self, percent: float, rounds: int) -> None:
        """Change, then refresh everything, so many times."""
        for number in range(1, rounds + 1):
            self.report(f"{percent:g} % changed, round {number} of {rounds} …")
            self.database.change(percent)
            self.database.tidy()
            for query in self.queries:
                self.rounds.append(self._round(query, percent, number))

    def _round(self, query: Query, percent: float, number: int) -> Round:
        # Whoever is first finds the changes in no cache, so that they take turns.
        modes = MODES[number % len(MODES) :] + MODES[: number % len(MODES)]
        results = {mode: self.client.refresh(named(query, mode)) for mode in modes}
        view = stopwatch(query.recompute, self.database.connection)
        if not all(query.equal(self.database.connection, named(query, mode)) for mode in MODES):
            self.unequal.add(query.name)
        seconds = {mode: result.duration.total_seconds() for mode, result in results.items()}
        done = Round(query.name, percent, number, results["AUTO"].action, results["AUTO"].reason or "", seconds, view)
        figures = ", ".join(f"{mode} {taken * 1e3:.0f} ms" for mode, taken in sorted({**seconds, "view": view}.items()))
        self.report(f"  {query.title}: {figures}; {done.action}: {done.reason}")
        return done


def named(query: Query, mode: str) -> str:
    """Name the stream table of a query in a refresh mode."""
    return f"{query.name}_{mode.lower()}"
