"""How well AUTO chooses: each query as several stream tables, all but one of which may not choose, side by side."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf

from benchmarks.clock import stopwatch
from benchmarks.tpch.database import Database
from benchmarks.tpch.queries import Query
from pytrickle.client.client import Client
from pytrickle.errors import PytrickleError
from pytrickle.refresh.values import RefreshResult

AUTO = "AUTO"
# What takes so many seconds, and so many times longer than the best, is not measured again.
HOPELESS = 20.0
FACTOR = 3
# Two ways within so many seconds of each other are equally good: as much as repetitions of one of them differ.
NOISE = 0.003
RIGHT = 1.2


@dataclass(frozen=True, slots=True)
class Way:
    """A refresh mode and an engine that a stream table is held to."""

    mode: str
    engine: str = "auto"

    @property
    def title(self) -> str:
        """Name it as the report does."""
        return self.mode if self.engine == "auto" else f"{self.mode} {self.engine}"

    def of(self, query: Query) -> str:
        """Name the stream table of a query that is held to it."""
        return "_".join([query.name, *self.title.lower().split()])


CHOOSING = Way(AUTO)
MODES = (CHOOSING, Way("DIFFERENTIAL"), Way("FULL"))
ENGINES = (CHOOSING, *(Way(mode, engine) for engine in ("postgres", "spark") for mode in ("DIFFERENTIAL", "FULL")))


@dataclass(frozen=True, slots=True)
class Round:
    """One round of one query: the way that AUTO took and why, and the seconds of each way and of the view."""

    query: str
    percent: float
    number: int
    way: str
    reason: str
    seconds: Mapping[str, float]
    view: float

    @property
    def best(self) -> float:
        """Return the seconds of the best of the ways that leave no choice."""
        return min(seconds for way, seconds in self.seconds.items() if way != AUTO)

    @property
    def right(self) -> bool:
        """Whether the way that AUTO chose takes hardly longer than the best, where there is no other."""
        return self.strictly_right or self._held - self.best <= NOISE

    @property
    def strictly_right(self) -> bool:
        """Whether it is within 1.2 times of the best."""
        return self._held <= RIGHT * self.best

    @property
    def lost(self) -> float:
        """Return how many seconds longer than the best AUTO itself took, its choice included."""
        return self.seconds[AUTO] - self.best

    @property
    def _held(self) -> float:
        return self.seconds.get(self.way, inf)


@dataclass(slots=True)
class Choices:
    """Measures the choices on one database; every round counts, from the first after the load on.

    `hopeless` are the stream tables that are measured no more.
    """

    database: Database
    client: Client
    queries: tuple[Query, ...]
    ways: tuple[Way, ...]
    report: Callable[[str], None]
    rounds: list[Round] = field(default_factory=list)
    unequal: set[str] = field(default_factory=set)
    hopeless: set[str] = field(default_factory=set)

    def create(self) -> None:
        """Create and load the stream tables of every query, and its materialized view."""
        for query in self.queries:
            self.report(f"Loading {query.title} …")
            query.create_view(self.database.connection)
            for way in self.ways:
                self.client.create_stream_table(way.of(query), query.text, refresh_mode=way.mode, engine=way.engine)
                self.client.refresh(way.of(query))

    def measure(self, percent: float, rounds: int) -> None:
        """Change, then refresh everything, so many times."""
        for number in range(1, rounds + 1):
            self.report(f"{percent:g} % changed, round {number} of {rounds} …")
            self.database.change(percent)
            self.database.tidy()
            for query in self.queries:
                self.rounds.append(self._round(query, percent, number))

    def _round(self, query: Query, percent: float, number: int) -> Round:
        measured = [way for way in self.ways if way.of(query) not in self.hopeless]
        # Whoever is first finds the changes in no cache, so that they take turns.
        turn = number % len(measured)
        results = {way: self._refresh(query, way) for way in (*measured[turn:], *measured[:turn])}
        view = stopwatch(query.recompute, self.database.connection)
        seconds = {way.title: result.duration.total_seconds() if result else inf for way, result in results.items()}
        chosen = results[CHOOSING]
        done = Round(
            query.name, percent, number, self._taken(chosen), (chosen and chosen.reason) or "failed", seconds, view
        )
        self._give_up(query, done, results)
        figures = ", ".join(f"{way} {taken * 1e3:.0f} ms" for way, taken in sorted({**seconds, "view": view}.items()))
        self.report(f"  {query.title}: {figures}; {done.way}: {done.reason}")
        return done

    def _refresh(self, query: Query, way: Way) -> RefreshResult | None:
        """Refresh it; None if that failed, as for a statement that took too long."""
        try:
            return self.client.refresh(way.of(query))
        except PytrickleError as error:
            self.report(f"  {way.of(query)} failed: {error.message}")
            return None

    def _taken(self, chosen: RefreshResult | None) -> str:
        """Name the way that AUTO took as the one that leaves no choice."""
        if chosen is None:
            return "failed"
        mode = "FULL" if chosen.action == "FULL" else "DIFFERENTIAL"
        engine = "auto" if self.ways == MODES else str(chosen.engine or "postgres")
        return Way(mode, engine).title

    def _give_up(self, query: Query, done: Round, results: Mapping[Way, RefreshResult | None]) -> None:
        """Compare what was refreshed with the view, and leave out what failed, or took much too long."""
        for way, result in results.items():
            seconds = done.seconds[way.title]
            if result and not query.equal(self.database.connection, way.of(query)):
                self.unequal.add(way.of(query))
            if way != CHOOSING and seconds > max(HOPELESS, FACTOR * done.best):
                self.hopeless.add(way.of(query))
                # What it does not take in any more would stay in the change buffers.
                self.client.drop_stream_table(way.of(query))
