"""Lanes: units that do not read each other are refreshed at the same time, each on connections of its own."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from logging import getLogger
from time import monotonic, sleep

from pytrickle.database import connect, is_stuck, keep_open, server_of, translate_errors, wait_a_moment
from pytrickle.errors import PytrickleError
from pytrickle.refresh.refresher import Refresher
from pytrickle.refresh.values import RefreshResult
from pytrickle.schedule.pass_ import NoConnectionLeft, OnResult, Pass
from pytrickle.schedule.units import Unit

Work = Callable[[Pass, Unit], None]

# How long there are fewer lanes, in seconds, before one more is tried; and how long closed sessions may still count.
FEWER_FOR = 300.0
ENDING = 0.2


@dataclass(slots=True)
class Lanes:
    """Up to `limit` refreshers at work at the same time, opened when first needed, and kept.

    The caller's own is none of them: meanwhile it settles what has no change to read, in its own transactions, and it
    does all the work where no lane can be opened. `fewer` is how many there were when the server refused another one.
    Until `fewer_until` there are `most` at most: beside more of them there was no connection left to compute by.
    """

    limit: int
    further: list[Refresher] = field(default_factory=list)
    fewer: int | None = None
    most: int | None = None
    fewer_until: float = 0.0

    def run(self, pass_: Pass, units: Sequence[Unit], work: Work) -> None:
        """Do the work on every unit after all that it reads, and on as many at a time as there are lanes.

        A unit that alone is ready stays in the calling thread, so that a chain never leaves it; so does one without a
        change to read. `on_result` is called in that thread only. Raise what ends a unit's work, after the others under
        way are done.
        """
        self._allow_another()
        if self.allowed == 1 or all(pass_.begins_quiet(unit) for unit in units):
            for unit in units:
                self.run_alone(pass_, unit, work)
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
                    self.run_alone(pass_, units[waiting[0]], work, crew)
                    order.done(waiting.popleft())
                else:
                    done, returned = crew.finished()
                    order.done(*done)
                    waiting.extendleft(reversed(returned))

    def run_alone(self, pass_: Pass, unit: Unit, work: Work, crew: "Crew | None" = None) -> None:
        """Do the work on a unit in the calling thread; with no connection left, again once all idle ones are closed."""
        idle = bool(self.further or pass_.refresher.snapshots.idle)
        try:
            work(replace(pass_, returns_work=idle), unit)
        except NoConnectionLeft as refused:
            beside = len(self.further)
            if crew:
                crew.dismiss()
            self.leave_room(0, beside, refused.error)
            pass_.refresher.snapshots.close()
            sleep(ENDING)
            work(pass_, unit)

    @property
    def allowed(self) -> int:
        """How many refreshers may be at work at the same time now; of one alone the caller's is enough."""
        return self.limit if self.most is None else self.most

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
                first.snapshots.refuse_another(server_of(connection), connection)
            self.further.append(first.beside(connection))
        return self.further[number]

    def give_up(self, refresher: Refresher) -> None:
        """Close the connection of a lane that cannot read the snapshot: others may need it."""
        self.further.remove(refresher)
        refresher.connection.close()

    def leave_room(self, opened: int, beside: int, error: PytrickleError) -> None:
        """Have fewer lanes for a while than those `beside` which there was no connection left to compute by.

        Close those that this pass has not `opened`: they come last.
        """
        while len(self.further) > opened:
            self.further.pop().connection.close()
        self.most = min(self.allowed, max(beside - 1, 1))
        self.fewer_until = monotonic() + FEWER_FOR
        if beside:
            self.settle_for(self.most, error)

    def settle_for(self, fewer: int, error: PytrickleError) -> None:
        """Log that no more than so many lanes can be opened, once until there are more."""
        if self.fewer is None:
            getLogger(__name__).warning("There are fewer lanes than allowed: %s", error)
        self.fewer = fewer

    def _allow_another(self) -> None:
        if self.most is not None and monotonic() > self.fewer_until:
            self.most = self.most + 1 if self.most + 1 < self.limit else None
            self.fewer_until = monotonic() + FEWER_FOR

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
    busy: dict[Future[None], "Task"] = field(default_factory=dict)

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        return not self.busy

    def lane(self) -> "Lane | None":
        """Return a lane that is free or can be opened, if there is one; what was refused is not asked for again."""
        if self.free or self.full or len(self.busy) >= self.lanes.allowed or self.lanes.allowed == 1:
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
        future = self.pool.submit(copy_context().run, self.work, lane.pass_, unit)
        self.busy[future] = Task(index, lane, self.opened)

    def finished(self) -> tuple[list[int], list[int]]:
        """Wait until work is done, and report its results.

        Return the indexes of its units, and of those that found no connection: they are to be tried again.
        """
        ended, _ = wait(self.busy, return_when=FIRST_COMPLETED)
        done, returned = [], []
        for future in ended:
            task = self.busy.pop(future)
            self.free.append(task.lane)
            try:
                future.result()
            except NoConnectionLeft as refused:
                self._make_room(task, refused.error)
                returned.append(task.index)
            else:
                done.append(task.index)
            task.lane.deliver(self.pass_.on_result)
        return done, returned

    def dismiss(self) -> None:
        """Close the lanes that are free."""
        while self.free:
            self._close(self.free.pop())

    def _make_room(self, task: "Task", error: PytrickleError) -> None:
        """Close what is not in use, and the lane of a refused task unless that ran beside more lanes than there are."""
        self.lanes.leave_room(self.opened, task.beside, error)
        self.pass_.refresher.snapshots.close()
        while self.free and (self.opened > self.lanes.allowed or self.lanes.allowed == 1):
            self._close(self.free.pop())
        sleep(ENDING)

    def _close(self, lane: "Lane") -> None:
        """Give back both connections of a lane."""
        self.lanes.give_up(lane.pass_.refresher)
        lane.pass_.base.connection.close()
        self.opened -= 1

    def cancel(self) -> None:
        """End the statements under way, so that their lanes can be left at once; what they did is undone."""
        for lane in (task.lane for task in self.busy.values()):
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
        own = replace(self.pass_, refresher=refresher, base=base, on_result=results.append, returns_work=True)
        return Lane(own, results)


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


@dataclass(frozen=True, slots=True)
class Task:
    """What a lane is at: the index of a unit, begun while so many lanes were open, its own among them."""

    index: int
    lane: Lane
    beside: int


def read_by(units: Sequence[Unit]) -> tuple[frozenset[int], ...]:
    """Return, for every unit, the indexes of the other units that it reads.

    A refresh group makes its members' readers wait, but a unit never waits for itself.
    """
    home: Mapping[int, int] = {table.relid: i for i, unit in enumerate(units) for table in unit.tables}
    return tuple(
        frozenset(home[d.relid] for table in unit.tables for d in table.dependencies if d.relid in home) - {i}
        for i, unit in enumerate(units)
    )
