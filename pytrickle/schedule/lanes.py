"""Lanes: units that do not read each other are refreshed at the same time, each on connections of its own."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from logging import getLogger
from time import monotonic

from pytrickle.database import connect, is_stuck, keep_open, translate_errors, wait_a_moment
from pytrickle.errors import PytrickleError
from pytrickle.refresh.refresher import Refresher
from pytrickle.refresh.values import RefreshResult
from pytrickle.schedule.pass_ import OnResult, Pass
from pytrickle.schedule.units import Unit

Work = Callable[[Pass, Unit], None]


@dataclass(slots=True)
class Lanes:
    """Up to `limit` refreshers at work at the same time, opened when first needed, and kept.

    The caller's own is none of them: meanwhile it settles what has no change to read, in its own transactions, and it
    does all the work where no lane can be opened. `fewer` is how many there were when the server refused another one.
    """

    limit: int
    further: list[Refresher] = field(default_factory=list)
    fewer: int | None = None

    def run(self, pass_: Pass, units: Sequence[Unit], work: Work) -> None:
        """Do the work on every unit after all that it reads, and on as many at a time as there are lanes.

        A unit that alone is ready stays in the calling thread, so that a chain never leaves it; so does one without a
        change to read. `on_result` is called in that thread only. Raise what ends a unit's work, after the others under
        way are done.
        """
        if self.limit == 1 or all(pass_.begins_quiet(unit) for unit in units):
            for unit in units:
                work(pass_, unit)
            return
        order = TopologicalSorter(dict(enumerate(read_by(units))))
        order.prepare()
        waiting: deque[int] = deque()
        with self._crew(pass_, work) as crew:
            while order.is_active():
                waiting.extend(sorted(order.get_ready()))
                own = bool(waiting) and (pass_.is_quiet(units[waiting[0]]) or (crew.idle and len(waiting) == 1))
                if waiting and not own and (lane := crew.lane()):
                    crew.start(lane, waiting[0], units[waiting.popleft()])
                elif waiting and (own or crew.idle):
                    work(pass_, units[waiting[0]])
                    order.done(waiting.popleft())
                else:
                    order.done(*crew.finished())

    def close(self) -> None:
        """Close the connections of the lanes."""
        while self.further:
            self.further.pop().connection.close()

    def refresher(self, first: Refresher, number: int) -> Refresher:
        """Return the refresher of a lane, on a connection of its own."""
        # When the first one is opened, none is in use.
        for lane in () if number else self.further:
            if is_stuck(lane.connection):
                lane.connection.close()
        self.further = [lane for lane in self.further if not (lane.connection.closed or lane.connection.broken)]
        while len(self.further) <= number:
            connection = connect(first.snapshots.dsn, role="refresher")
            with translate_errors():
                wait_a_moment(connection)
                keep_open(connection)
            self.further.append(first.beside(connection))
        return self.further[number]

    def give_up(self, refresher: Refresher) -> None:
        """Close the connection of a lane that cannot read the snapshot: others may need it."""
        self.further.remove(refresher)
        refresher.connection.close()

    def settle_for(self, fewer: int, error: PytrickleError) -> None:
        """Log that no more than so many lanes can be opened, once until there are more."""
        if self.fewer is None:
            getLogger(__name__).warning("There are fewer lanes than allowed: %s", error)
        self.fewer = fewer

    @contextmanager
    def _crew(self, pass_: Pass, work: Work) -> Iterator["Crew"]:
        with ExitStack() as held, ThreadPoolExecutor(self.limit, "refresh") as pool:
            crew = Crew(self, pass_, work, pool, held)
            try:
                yield crew
            except KeyboardInterrupt:
                crew.cancel()
                raise


@dataclass(slots=True)
class Crew:
    """The lanes of one pass: each reads the pass's snapshot on a connection of its own."""

    lanes: Lanes
    pass_: Pass
    work: Work
    pool: ThreadPoolExecutor
    held: ExitStack
    opened: int = 0
    full: bool = False
    free: list["Lane"] = field(default_factory=list)
    busy: dict[Future[None], tuple[int, "Lane"]] = field(default_factory=dict)

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        return not self.busy

    def lane(self) -> "Lane | None":
        """Return a lane that is free or can be opened, if there is one; what was refused is not asked for again."""
        if self.free or self.full or len(self.busy) >= self.lanes.limit:
            return self.free.pop() if self.free else None
        try:
            lane = self._open()
        except PytrickleError as error:
            self.full = True
            self.lanes.settle_for(self.opened, error)
            return None
        if self.lanes.fewer is not None and self.opened > self.lanes.fewer:
            self.lanes.fewer = None
        return lane

    def start(self, lane: "Lane", index: int, unit: Unit) -> None:
        """Have a lane do the work on a unit."""
        lane.pass_.since = monotonic()
        # Whoever traces this thread traces the lane as well.
        self.busy[self.pool.submit(copy_context().run, self.work, lane.pass_, unit)] = (index, lane)

    def finished(self) -> tuple[int, ...]:
        """Wait until work is done, report its results, and return the indexes of its units."""
        done, _ = wait(self.busy, return_when=FIRST_COMPLETED)
        indexes = []
        for future in done:
            index, lane = self.busy.pop(future)
            self.free.append(lane)
            future.result()
            lane.deliver(self.pass_.on_result)
            indexes.append(index)
        return tuple(indexes)

    def cancel(self) -> None:
        """End the statements under way, so that their lanes can be left at once; what they did is undone."""
        for _, lane in self.busy.values():
            for connection in (lane.pass_.refresher.connection, lane.pass_.base.connection):
                connection.cancel_safe()

    def _open(self) -> "Lane":
        refresher = self.lanes.refresher(self.pass_.refresher, self.opened)
        try:
            base = self.held.enter_context(self.pass_.refresher.snapshots.join(self.pass_.base))
        except PytrickleError:
            self.lanes.give_up(refresher)
            raise
        self.opened += 1
        results: list[RefreshResult] = []
        return Lane(replace(self.pass_, refresher=refresher, base=base, on_result=results.append), results)


@dataclass(slots=True)
class Lane:
    """One lane: the pass as it carries it out, sharing what was written, and the results not reported yet."""

    pass_: Pass
    results: list[RefreshResult]

    def deliver(self, on_result: OnResult) -> None:
        """Report the results and forget them."""
        for result in self.results:
            on_result(result)
        self.results.clear()


def read_by(units: Sequence[Unit]) -> tuple[frozenset[int], ...]:
    """Return, for every unit, the indexes of the other units that it reads.

    A refresh group makes its members' readers wait, but a unit never waits for itself.
    """
    home: Mapping[int, int] = {table.relid: i for i, unit in enumerate(units) for table in unit.tables}
    return tuple(
        frozenset(home[d.relid] for table in unit.tables for d in table.dependencies if d.relid in home) - {i}
        for i, unit in enumerate(units)
    )
