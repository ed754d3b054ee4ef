"""Choosing the way of one refresh: by what is known, or by comparing what both ways would take."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import inf
from time import monotonic

import psycopg

from pytrickle.catalog.definition import ChangeRange, Evidence
from pytrickle.catalog.past_refreshes import evidence
from pytrickle.catalog.query_cost import expected_rows, query_cost
from pytrickle.catalog.session_settings import session_statements
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.plan.algebra.relation import scans
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.auto import NEAR, SMALL, WORTH_ASKING, expected, is_unfamiliar, lacks_whole, least_worth_asking
from pytrickle.plan.delta_terms import least_length
from pytrickle.plan.placement import Place, Standing, Way, choose_way, delta_way
from pytrickle.plan.planning import plan_differential
from pytrickle.plan.quote import Quote
from pytrickle.plan.refresh_plan import FEW_CHANGES, RefreshPlan
from pytrickle.plan.task import Task
from pytrickle.refresh.remembered import Remembered, Size, size_of

# The SQL of the delta of fewer tables is never long.
MANY_TABLES = 5


@dataclass(frozen=True, slots=True)
class Chosen:
    """A way, the plan for the changes where the choice needed it, and the seconds that only the choice took."""

    way: Way
    delta: RefreshPlan | None = None
    seconds: float = 0.0


def known_way(
    past: Remembered,
    task: Task,
    standing: Standing,
    known: Evidence | None,
    compiled: Callable[[], RefreshPlan] | None = None,
) -> Way | None:
    """Choose the way by what is known and was asked before; None where that does not suffice.

    Where asking would not pay, the plan that is `compiled` for the changes tells how long it is.
    """
    if not standing.has_choice:
        return choose_way(standing, None)
    if known is None:
        return None
    known = past.about(_number(task), known, changed_sources(task.ranges.values()))
    length = _length_over_little(task, known)
    if standing.spark or task.delta_rows < least_worth_asking(known, length=length):
        return choose_way(standing, known)
    quote = past.quote(_number(task), task.shape, _size(task, known))
    if not is_unfamiliar(task.delta_rows, known, length):
        quote = quote or _of_whole(past, task, known, length)
    elif quote is None or quote.at_least:
        quote = _unasked(quote or _least(past, task, known), standing, task.delta_rows, known, compiled)
        if quote:
            past.keep(_number(task), task.shape, _size(task, known), quote)
    way = choose_way(standing, known, quote) if quote else None
    return None if way is None or way.tries else way


def _unasked(
    least: Quote, standing: Standing, rows: int, known: Evidence, compiled: Callable[[], RefreshPlan] | None
) -> Quote | None:
    """Judge a delta that was never measured by its length; None where PostgreSQL's planner is to be asked."""
    if least.whole is None and lacks_whole(known):
        return None
    costs = expected(known, standing.grouped, least)
    if costs.favours_whole(rows):
        return least
    return _as_long_as(least, compiled()) if compiled and costs.whole <= NEAR else None


def _length_over_little(task: Task, known: Evidence) -> int:
    """Say how long the delta's SQL is at least where only that can make a difference: few tables have a short one."""
    little = known.source_rows < SMALL and len(scans(task.query.rows)) >= MANY_TABLES
    return least_length(task) if little else 0


def _of_whole(past: Remembered, task: Task, known: Evidence, length: int) -> Quote | None:
    """Say what the whole query costs; None where the planner is to be asked."""
    whole = past.whole_cost(_number(task), task.shape, known.source_rows)
    return None if whole is None and lacks_whole(known) else Quote(length, whole=whole, at_least=True)


def _least(past: Remembered, task: Task, known: Evidence) -> Quote:
    """Say what is known of a delta that was not compiled: how long it is at least, and what the whole query costs."""
    whole = past.whole_cost(_number(task), task.shape, known.source_rows)
    return Quote(least_length(task), whole=whole, at_least=True, kept=task.delta_rows <= FEW_CHANGES)


def _as_long_as(quote: Quote, delta: RefreshPlan) -> Quote:
    """Say how long the compiled delta is."""
    kept = quote.kept and delta.placement.place is Place.INDEX
    return replace(quote, length=delta.length, at_least=False, kept=kept)


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice for one task; `whole` plans the whole refresh, so that PostgreSQL's planner can be asked about it.

    `analyzing` lets that planner know of the changes before it is asked what they cost.
    """

    connection: psycopg.Connection
    table: StreamTable
    task: Task
    standing: Standing
    past: Remembered
    whole: Callable[[], RefreshPlan]
    analyzing: Callable[[], None]

    def made(self) -> Chosen:
        """Choose; more than what is known is asked for only where that does not suffice."""
        pgt_id, began = self.table.pgt_id, monotonic()
        if not self.standing.has_choice:
            only = choose_way(self.standing, None)
            told = sized(self.connection, self.table, self.task, only, self.whole)
            return Chosen(told, None, 0.0 if told is only else monotonic() - began)
        if self.task.delta_rows >= WORTH_ASKING:
            self.past.forget(pgt_id)
        known = self.past.evidence(pgt_id, lambda: evidence(self.connection, self.table))
        if way := known_way(self.past, self.task, self.standing, known):
            return Chosen(way, seconds=monotonic() - began)
        known = self.past.about(pgt_id, known, changed_sources(self.task.ranges.values()))
        quote, delta, compiling = self._quote(known)
        self.past.keep(pgt_id, self.task.shape, _size(self.task, known), quote)
        way = choose_way(self.standing, known, quote)
        # What was compiled is part of a refresh that uses it.
        used = compiling if way.action is Action.DIFFERENTIAL else 0.0
        return Chosen(way, delta, monotonic() - began - used)

    def _quote(self, known: Evidence) -> tuple[Quote, RefreshPlan | None, float]:
        """Find out as little as decides: the least length of the delta, the cost of the whole, its length, its cost.

        Return beside it the plan for the changes and the seconds that compiling it took, where that was needed.
        """
        rows, grouped = self.task.delta_rows, self.standing.grouped
        quote = _least(self.past, self.task, known)
        costs = expected(known, grouped, quote)
        if quote.whole is None and lacks_whole(known) and not costs.favours_whole(rows):
            quote = replace(quote, whole=self._cost(self.whole()))
            costs = expected(known, grouped, quote)
        if costs.favours_whole(rows) or costs.experience.knows(rows):
            return quote, None, 0.0
        began = monotonic()
        delta = plan_differential(self.task, delta_way(rows))
        compiling, quote = monotonic() - began, _as_long_as(quote, delta)
        if delta.read and expected(known, grouped, quote).is_worth_asking_about(rows):
            self.analyzing()
            quote = replace(quote, delta=self._cost(delta))
        return quote, delta, compiling

    def _cost(self, plan: RefreshPlan) -> float:
        """Ask PostgreSQL's planner what a plan costs; infinitely much if it refuses: running it will say why."""
        settings = session_statements(self.table)
        found = [
            query_cost(self.connection, read.query, (*settings, *read.settings))
            for read in (plan.read, plan.keyed)
            if read
        ]
        return sum(inf if cost is None else cost for cost in found)


def sized(
    connection: psycopg.Connection, table: StreamTable, task: Task, way: Way, whole: Callable[[], RefreshPlan]
) -> Way:
    """Say how many rows a whole refresh returns that reads so many that Spark would be asked to hand them on."""
    if way.action is Action.DIFFERENTIAL or not 0 < task.limits.direct < task.rows_read:
        return way
    plan = whole()
    if plan.placement.direct or plan.read is None:
        return way
    settings = (*session_statements(table), *plan.read.settings)
    return replace(way, stored_rows=expected_rows(connection, plan.read.query, settings))


def changed_sources(ranges: Iterable[ChangeRange]) -> frozenset[int]:
    """Return the sources that have changes of which anything comes."""
    return frozenset(change_range.relid for change_range in ranges if change_range.changed)


def _number(task: Task) -> int:
    return task.shape.definition.pgt_id


def _size(task: Task, known: Evidence) -> Size:
    return size_of(changed_sources(task.ranges.values()), task.delta_rows, known.source_rows)
