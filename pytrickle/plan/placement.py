"""Everything that is decided about one refresh: whole or delta, who joins, who aggregates, who reads, who stages."""

from dataclasses import dataclass, replace
from enum import StrEnum

from pytrickle.catalog.definition import Evidence
from pytrickle.config import EngineName
from pytrickle.plan.apply_plan import Action, Stage
from pytrickle.plan.auto import choose_action, least_worth_asking
from pytrickle.plan.limits import Limits, Means
from pytrickle.plan.missing_index import MissingIndex
from pytrickle.plan.postgres.in_place import MANY
from pytrickle.plan.quote import Quote
from pytrickle.plan.trial import limited
from pytrickle.readable import counted

# From so many rows on, the result may be too large for one process.
BULK_ROWS = 1_000_000


class Place(StrEnum):
    """Where the joins of a refresh are computed."""

    INDEX = "PostgreSQL, index lookups from the delta"
    POSTGRES = "PostgreSQL, joins planned freely"
    SPARK = "Spark, every source read once"


# Where a lookup has two keys with an index each, PostgreSQL likes to read both and to compare what they find, although
# the first finds a few rows and the second hundreds. Each join column has an index that needs no bitmap.
SETTINGS = {
    Place.INDEX: (
        "SET LOCAL enable_seqscan = off",
        "SET LOCAL enable_bitmapscan = off",
        "SET LOCAL enable_mergejoin = off",
        "SET LOCAL random_page_cost = 1.1",
    ),
    Place.POSTGRES: ("SET LOCAL work_mem = '64MB'",),
    Place.SPARK: (),
}
ALONE = "SET LOCAL max_parallel_workers_per_gather = 0"
SEQUENTIAL = (ALONE, "SET LOCAL synchronize_seqscans = off")
# Of twelve tables and more PostgreSQL tries some orders of joining only, here a fourth as many as by default: a delta
# joins them once for each source that changed, and was planned for longer than it ran.
PLANNER = (
    "SET LOCAL jit = off",
    "SET LOCAL join_collapse_limit = 12",
    "SET LOCAL from_collapse_limit = 12",
    "SET LOCAL geqo_effort = 1",
)


def settings_of(place: Place | None, delta_rows: int) -> tuple[str, ...]:
    """List the settings under which a delta of so many rows is read; for few of them a second process only costs."""
    if place is None:
        return PLANNER
    alone = (ALONE,) if place is Place.INDEX and delta_rows < MANY else ()
    return (*PLANNER, *SETTINGS[place], *alone)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the way of a refresh depends on: the stream table's row, its query's `full_reason`, and its changes.

    `spark` says that Spark computes it in any case, `changed` whether anything comes of the changes, as far as known,
    `may_give_up` that it can go another way if it takes too long.
    """

    populated: bool
    reinitialize_reason: str | None
    refresh_mode: str
    output_mode: str
    full_reason: str | None
    grouped: bool
    delta_rows: int
    spark: bool = False
    changed: bool = True
    may_give_up: bool = False

    @property
    def has_choice(self) -> bool:
        """Whether AUTO may choose."""
        lasting = self.populated and not self.reinitialize_reason and self.delta_rows > 0 and self.changed
        return lasting and self.refresh_mode == "AUTO" and self.output_mode == "update" and not self.full_reason


@dataclass(frozen=True, slots=True)
class Way:
    """Whole or delta, and why; the rows of the stream table where AUTO has chosen, of all that is kept once `sized`.

    Of a whole refresh that reads many rows `stored_rows` may be how many PostgreSQL's planner expects it to return. It
    may read for `most_seconds`, if that is limited. For `other_seconds` the other way is timed after it.
    """

    action: Action
    reason: str
    stored_rows: int | None = None
    kept_rows: int | None = None
    most_seconds: float | None = None
    other_seconds: float | None = None

    @property
    def tries(self) -> bool:
        """Whether it finds out what one of both ways takes."""
        return self.most_seconds is not None or self.other_seconds is not None

    def sized(self, evidence: Evidence) -> "Way":
        """Say how many rows there are."""
        return replace(self, stored_rows=evidence.stored_rows, kept_rows=evidence.kept_rows)


@dataclass(frozen=True, slots=True)
class Terms:
    """What the terms of a delta read: changes alone, tables without an index, or some operation for all keys.

    `spark_can` says whether Spark is able, and allowed, to join them, `spark_groups` whether it can group the result.
    """

    buffers_only: bool
    missing: tuple[MissingIndex, ...]
    for_all_keys: bool
    spark_can: bool = False
    spark_groups: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """What is decided about one refresh. `explain` prints it, the refresh follows it, and nothing else decides.

    - Whole or delta: `action`, for this `reason`.
    - Who joins: `place`, with a reason and the indexes that would allow lookups; None for a whole refresh.
    - Who aggregates: Spark where `stage` is PARTS, the write transaction where it is INPUT, else PostgreSQL while it
      reads.
    - Who reads: with `direct` the refresher itself, without a job of Spark's, for this `engine_reason`.
    - Who stages: with `staging_table` Spark, for the rows may be too many for this process.
    - With an `obstacle` PostgreSQL does all of that although the engine is Spark.
    """

    action: Action
    reason: str
    stage: Stage
    place: Place | None = None
    place_reason: str | None = None
    missing: tuple[MissingIndex, ...] = ()
    direct: bool = False
    staging_table: bool = False
    engine_reason: str = ""
    obstacle: str = ""

    @property
    def engine(self) -> EngineName:
        """Who computes it: Spark as soon as it moves the rows."""
        return EngineName.POSTGRES if self.direct else EngineName.SPARK


def choose_way(standing: Standing, evidence: Evidence | None, quote: Quote | None = None) -> Way:
    """Choose between the whole and the delta; `evidence` is None where there is no choice to make."""
    if not standing.populated or standing.reinitialize_reason:
        action = Action.REINITIALIZE if standing.populated else Action.FULL
        return Way(action, standing.reinitialize_reason or "first load")
    if standing.refresh_mode == "FULL":
        return Way(Action.FULL, "refresh_mode is FULL")
    if standing.output_mode == "complete":
        return Way(Action.FULL, "output_mode is complete")
    if standing.full_reason:
        return Way(Action.FULL, f"no delta rule: {standing.full_reason}")
    if evidence is not None:
        least = least_worth_asking(evidence, standing.spark, quote.length if quote else 0)
        choice = choose_action(standing.delta_rows, evidence, standing.grouped, least, quote)
        if standing.delta_rows >= least:
            if standing.may_give_up and not standing.spark:
                choice = limited(choice, standing.delta_rows)
            most, other = choice.most_seconds, choice.other_seconds
            return Way(choice.action, choice.reason, choice.stored_rows, most_seconds=most, other_seconds=other)
    return delta_way(standing.delta_rows)


def delta_way(delta_rows: int) -> Way:
    """Take in the delta, where nothing speaks for the whole."""
    return Way(Action.DIFFERENTIAL, counted(delta_rows, "changed row"))


def place_whole(way: Way, stage: Stage, rows_read: int, limits: Limits) -> Placement:
    """Decide about a refresh that computes everything from so many rows of the sources and their changes."""
    rows = min(rows_read, rows_read if way.stored_rows is None else way.stored_rows)
    few = limits.direct > 0 and rows <= limits.direct
    reason = _compared(rows, few, limits)
    # Groups are few beside their rows, and PostgreSQL computes in parallel what it copies, not what Spark fetches.
    if not few and limits.direct > 0 and stage is Stage.STATE:
        few, reason = True, "PostgreSQL groups the rows as it reads"
    placed = _carried(Placement(way.action, way.reason, stage, engine_reason=reason), few, rows_read, limits)
    return place_whole(way, stage, rows_read, limits.without_table()) if _lacks_table(placed, limits) else placed


def place_whole_in_spark(way: Way, grouped: bool, rows_read: int, limits: Limits) -> Placement | None:
    """Decide about one that Spark computes from the sources; None where its rows need a table that cannot be had."""
    stage = Stage.STATE_PARTS if grouped else Stage.CONTENT
    whole = Placement(way.action, way.reason, stage, Place.SPARK, limits.chosen)
    placed = _carried(whole, False, rows_read, limits)
    return None if _lacks_table(placed, limits) else placed


def place_delta(way: Way, terms: Terms, grouped: bool, delta_rows: int, limits: Limits) -> Placement:
    """Decide about a refresh that takes in so many changes."""
    place, why = join_place(terms, delta_rows, limits)
    stage = _delta_stage(place, terms.spark_groups) if grouped else Stage.CHANGES
    few = place is not Place.SPARK and delta_rows <= limits.direct
    reason = why if place is Place.SPARK else _compared(delta_rows, few, limits)
    placement = Placement(way.action, way.reason, stage, place, why, terms.missing, engine_reason=reason)
    placed = _carried(placement, few, delta_rows, limits)
    return (
        place_delta(way, terms, grouped, delta_rows, limits.without_table()) if _lacks_table(placed, limits) else placed
    )


def _delta_stage(place: Place, spark_groups: bool) -> Stage:
    if place is not Place.SPARK:
        return Stage.INCREMENTS
    return Stage.PARTS if spark_groups else Stage.INPUT


def join_place(terms: Terms, delta_rows: int, limits: Limits) -> tuple[Place, str]:
    """Choose where terms are joined, and say why; the changed rows of all sources count together."""
    place, why = _preferred_place(terms, delta_rows, limits)
    if place is Place.INDEX and terms.for_all_keys:
        return Place.POSTGRES, "a part of the query is computed for all keys"
    return place, why


def _preferred_place(terms: Terms, delta_rows: int, limits: Limits) -> tuple[Place, str]:
    if terms.buffers_only:
        return Place.INDEX, "only buffered changes are read"
    if limits.let_spark_join(delta_rows):
        return (
            Place.SPARK if terms.spark_can else Place.POSTGRES,
            f"{counted(delta_rows, 'changed row')}, more than {limits.small}",
        )
    if terms.missing:
        return Place.POSTGRES, "a join column has no index"
    few = "" if limits.means is Means.POSTGRES else f", at most {limits.small}"
    return Place.INDEX, f"{counted(delta_rows, 'changed row')}{few}, and every join column is indexed"


def _compared(rows: int, few: bool, limits: Limits) -> str:
    return f"{rows:,} {'row' if rows == 1 else 'rows'}, {'at most' if few else 'more than'} {limits.direct:,}"


def _carried(placement: Placement, few: bool, rows: int, limits: Limits) -> Placement:
    """Decide who reads what PostgreSQL computed, and whether Spark writes it to a staging table."""
    alone = limits.means is Means.POSTGRES
    direct = few or alone
    reason = limits.chosen or placement.engine_reason
    if alone and (limits.spark or not limits.chosen):
        reason = f"Spark cannot take part, {limits.obstacle}"
    obstacle = limits.obstacle if alone and limits.spark else ""
    table = not direct and rows > BULK_ROWS
    return replace(placement, direct=direct, staging_table=table, engine_reason=reason, obstacle=obstacle)


def _lacks_table(placement: Placement, limits: Limits) -> bool:
    """Whether rows need a staging table where none can be had, so that PostgreSQL has to compute them alone."""
    return placement.staging_table and limits.means is Means.NO_STAGING_TABLE
