"""What one process remembers of the past of stream tables, so that few changes need not ask for it each time."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from pytrickle.catalog.definition import Evidence, PastRefresh, size_class
from pytrickle.catalog.past_refreshes import RENEWED
from pytrickle.plan.cost import PATIENCE
from pytrickle.plan.quote import Quote

# The database's history is read again before this process has added RENEWED refreshes to what it remembers, and where a
# refresh took so many seconds that a query more does not matter.
SLOW = 1.0
# So many refreshes of about each number of changes are remembered; more would change nothing.
KEPT = 2 * PATIENCE
# Groups within a query that whole refreshes left behind are filled again after so many of them, for a delta may pay by
# now. Those that were filled in vain, because that fails or another process leaves them behind, are tried again after
# twice as many refreshes each time, up to so many.
MOST_LEFT = 100
# So many quotes of one stream table are kept.
QUOTES = 64

# Which sources changed, and the size class of their changes.
Changes = tuple[frozenset[int], int]
# Of the differential refreshes that other processes gave up nobody knows which sources had changed.
UNKNOWN: frozenset[int] = frozenset()
# A whole refresh that was given up is remembered under these changes, for what one takes does not depend on them.
ANY_CHANGES: Changes = frozenset(), -1

# Which sources changed; how many changes there are, and how many rows the sources have, by size classes.
Size = tuple[frozenset[int], int, int]


@dataclass(slots=True)
class Remembered:
    """Remembers by stream table its evidence, kept up with this process's refreshes, and the quotes of its shape.

    `planned_few` has the settings under which the changes were read, where the last refresh took in few. `measured`
    are the sources whose changes differential refreshes of this process took in together. `tried` are the
    stream tables whose changes Spark joined: what failed there is not tried again. `failed` are those of which the
    last refresh in a single transaction did. `given_up` are the refreshes that took too long, differential ones with
    the sources that had changed, or what they would have taken, where that was timed; `made_since` counts the refreshes
    after that. What other processes gave up comes from the history when that is first read. Of `unlimited` stream
    tables Spark would have read what was to be tried, which no limit ends.
    `left_behind` counts the refreshes that left behind the groups that a query keeps, `untaken` how often it was tried
    to fill them since a refresh used them last.
    What is kept for `grown` stream tables may have many more rows since it was last looked at.
    """

    evidences: dict[int, Evidence] = field(default_factory=dict)
    added: dict[int, int] = field(default_factory=dict)
    measured: dict[int, set[frozenset[int]]] = field(default_factory=dict)
    quotes: dict[int, tuple[object, dict[Size, Quote]]] = field(default_factory=dict)
    planned_few: dict[int, tuple[str, ...]] = field(default_factory=dict)
    tried: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    given_up: dict[int, dict[Changes, PastRefresh]] = field(default_factory=dict)
    made_since: Counter[int] = field(default_factory=Counter)
    unlimited: set[int] = field(default_factory=set)
    left_behind: Counter[int] = field(default_factory=Counter)
    untaken: Counter[int] = field(default_factory=Counter)
    grown: set[int] = field(default_factory=set)

    def evidence(self, pgt_id: int, read: Callable[[], Evidence]) -> Evidence:
        """Return what is known of a stream table; `read` asks the database, where that is due."""
        known = self.fresh(pgt_id)
        if known is None:
            known = read()
            if pgt_id not in self.added:
                self.given_up[pgt_id] = {_changes(past, UNKNOWN): past for past in known.given_up}
                self.made_since[pgt_id] = known.made_since
            known = self.evidences[pgt_id] = replace(known, refreshes=_newest(known.refreshes))
            self.added[pgt_id] = 0
        return known

    def fresh(self, pgt_id: int) -> Evidence | None:
        """Return what is known of a stream table, None where the database is to be asked."""
        return self.evidences.get(pgt_id) if self.added.get(pgt_id, 0) < RENEWED else None

    def last_seconds(self, pgt_id: int) -> float:
        """Return how long the last refresh of a stream table took, 0 where that is not known."""
        known = self.evidences.get(pgt_id)
        return known.refreshes[0].seconds if known and known.refreshes else 0.0

    def about(self, pgt_id: int, evidence: Evidence, changed: frozenset[int]) -> Evidence:
        """Leave out what changes of other sources took: that says nothing of a dimension table that never changed.

        Which sources changed is not in the history, so that a process which has measured nothing yet trusts it.
        """
        known = self.measured.get(pgt_id)
        given_up = [past for (sources, _), past in self.given_up.get(pgt_id, {}).items() if sources <= changed]
        trusted = not known or any(changed <= sources for sources in known)
        refreshes = tuple(past for past in evidence.refreshes if trusted or past.whole)
        return replace(evidence, refreshes=(*given_up, *refreshes)) if given_up or not trusted else evidence

    def give_up(self, pgt_id: int, whole: bool, delta_rows: int, limit: float, changed: frozenset[int]) -> None:
        """Remember that a refresh took longer than a limit, until a hundred were made another way, or a whole one."""
        self.made_since[pgt_id] = 0
        self._found(pgt_id, PastRefresh.given_up(whole, delta_rows, limit), changed)

    def is_due_again(self, pgt_id: int, changed: frozenset[int], delta_rows: int) -> bool:
        """Whether a delta like this is to be timed beside the whole refresh under way, for it may be quicker after all.

        One was given up, and this is the 2nd, 4th, 8th ... refresh since; or a single one was made.
        """
        known, size = self.given_up.get(pgt_id, {}), size_class(delta_rows)
        past = known.get((changed, size), known.get((UNKNOWN, size)))
        if past is None:
            return self._is_doubtful(pgt_id, size)
        since = self.made_since[pgt_id] + 1
        return past.limit is not None and since > 1 and _is_power_of_two(since)

    def _is_doubtful(self, pgt_id: int, size: int) -> bool:
        """Whether a single delta of a size was made, and the refresh under way is the 1st, 2nd, 4th ... like it since.

        It may have been slow for once, as the first of a process is.
        """
        known = self.evidences.get(pgt_id)
        like = [past.whole for past in known.refreshes if size_class(past.delta_rows) == size] if known else []
        return like.count(False) == 1 and _is_power_of_two(like.index(False) + 1)

    def found_out(self, pgt_id: int, past: PastRefresh, changed: frozenset[int]) -> None:
        """Take note of what a refresh takes that was not made, until a hundred were made another way."""
        if past.whole:
            self.made_since[pgt_id] = 0
        else:
            self.measured.setdefault(pgt_id, set()).add(changed)
        self._found(pgt_id, past, changed)

    def add(self, pgt_id: int, past: PastRefresh, changed: frozenset[int]) -> None:
        """Take note of a refresh of this process; after a slow one, or a first load, the database is asked again."""
        if past.delta_rows and not past.whole and not changed:
            # Its changes came to nothing, which tells nothing of others.
            return
        self.made_since[pgt_id] += 1
        if self.made_since[pgt_id] >= RENEWED:
            self.given_up.pop(pgt_id, None)
        self._outdate(pgt_id, past, changed)
        if not past.whole:
            self.measured.setdefault(pgt_id, set()).add(changed)
        known = self.evidences.get(pgt_id)
        if known is None:
            return
        if not past.delta_rows or past.seconds >= SLOW:
            self.forget(pgt_id)
            return
        # A copy, for other lanes read it meanwhile.
        self.evidences[pgt_id] = replace(known, refreshes=_newest((past, *known.refreshes)))
        self.added[pgt_id] = self.added.get(pgt_id, 0) + 1

    def _found(self, pgt_id: int, past: PastRefresh, changed: frozenset[int]) -> None:
        self._outdate(pgt_id, past, changed)
        self.given_up.setdefault(pgt_id, {})[_changes(past, changed)] = past

    def _outdate(self, pgt_id: int, past: PastRefresh, changed: frozenset[int]) -> None:
        """Forget what was given up of refreshes like one that is known now, whichever process gave it up."""
        for sources in (changed, UNKNOWN):
            self.given_up.get(pgt_id, {}).pop(_changes(past, sources), None)

    def forget(self, pgt_id: int) -> None:
        """Ask the database again the next time."""
        self.evidences.pop(pgt_id, None)

    def enough_left(self, pgt_id: int, whole: bool) -> int:
        """Return after how many refreshes that left them behind the groups that a query keeps are filled again.

        After `whole` refreshes that is seldom, unless they are made because a delta without the groups took too long,
        or one with them would have been quicker.
        """
        if whole and not any(not past.whole for past in self.given_up.get(pgt_id, {}).values()):
            return MOST_LEFT
        # Once in vain may be chance.
        return min(1 << max(self.untaken[pgt_id] - 1, 0), MOST_LEFT)

    def filled(self, pgt_id: int) -> None:
        """Forget what the planner said of a delta without the groups that are kept now, and that one was given up.

        What was timed had the groups.
        """
        self.quotes.pop(pgt_id, None)
        known = self.given_up.get(pgt_id, {})
        self.given_up[pgt_id] = {changes: past for changes, past in known.items() if past.whole or past.limit is None}

    def quote(self, pgt_id: int, shape: object, size: Size) -> Quote | None:
        """Return the quote for a size, if one was asked for since the stream table has this shape."""
        known = self.quotes.get(pgt_id)
        return known[1].get(size) if known is not None and known[0] is shape else None

    def whole_cost(self, pgt_id: int, shape: object, source_rows: int) -> float | None:
        """Return what the planner said that the whole query costs, if it was asked about as many rows of this shape."""
        known = self.quotes.get(pgt_id)
        if known is None or known[0] is not shape:
            return None
        sizes = (size for size in known[1] if size[2] == size_class(source_rows))
        return next((known[1][size].whole for size in sizes if known[1][size].whole is not None), None)

    def keep(self, pgt_id: int, shape: object, size: Size, quote: Quote) -> None:
        """Keep a quote."""
        known = self.quotes.get(pgt_id)
        if known is None or known[0] is not shape or len(known[1]) >= QUOTES:
            known = self.quotes[pgt_id] = (shape, {})
        known[1][size] = quote


def _changes(past: PastRefresh, changed: frozenset[int]) -> Changes:
    return ANY_CHANGES if past.whole else (changed, size_class(past.delta_rows))


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


def _newest(refreshes: Iterable[PastRefresh]) -> tuple[PastRefresh, ...]:
    """Keep the newest of each class of sizes, in their order."""
    seen: Counter[int] = Counter()
    kept = []
    for past in refreshes:
        size = size_class(past.delta_rows)
        seen[size] += 1
        if seen[size] <= KEPT:
            kept.append(past)
    return tuple(kept)


def size_of(changed: frozenset[int], delta_rows: int, source_rows: int) -> Size:
    """Return the size of so many changes of some sources, which have so many rows together."""
    return changed, size_class(delta_rows), size_class(source_rows)
