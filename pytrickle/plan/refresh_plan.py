"""One refresh as data: what is decided about it, what is read where, and how it is applied."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pytrickle.catalog.definition import ChangeRange
from pytrickle.plan.algebra.relation import Relation
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.apply_plan import Action, ApplyPlan, KeptTable
from pytrickle.plan.placement import Place, Placement
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.spark.grouping import SparkGrouping
from pytrickle.plan.spark.leaves import SparkTerm, reads_of

# So many are taken in so fast that nobody else is likely to alter the stream table meanwhile.
FEW_CHANGES = 16_000
# Of so many, rows are copied there, too, where they are not few.
FEW_COPIED = 4_000
# A statement under it is planned once, for any parameters.
KEPT_PLAN = "SET LOCAL plan_cache_mode = force_generic_plan"
# What PostgreSQL computes beside the joins of Spark.
LEFT_CALLS = "some aggregate has no rule for Spark"
LEFT_GROUPS = f"the groups because {LEFT_CALLS}"
HANDED_ON = "every part of it, Spark hands on the rows: "
RECOMPUTED = "the touched groups anew because increments do not suffice"

PLAIN = "SELECT {columns} FROM (\n{query}\n) AS q"
CONSOLIDATED = """
SELECT {items}CAST(sum({weight}) AS bigint) AS {weight}
FROM (\n{query}\n) AS q
GROUP BY {numbers} HAVING sum({weight}) <> 0
"""


@dataclass(frozen=True, slots=True)
class PostgresQuery:
    """One JDBC read: a query whose columns are all text but the weight, and the planner settings for it."""

    query: str
    columns: tuple[str, ...]
    weighted: bool
    settings: tuple[str, ...]

    @property
    def consolidated(self) -> str:
        """The query with weighted rows consolidated, as Spark does: texts are equal where their bytes are."""
        if not self.weighted:
            return PLAIN.format(columns=", ".join(self.columns), query=self.query)
        items = "".join(f'{column} COLLATE "C" AS {column}, ' for column in self.columns)
        numbers = ", ".join(str(i + 1) for i in range(len(self.columns))) or "()"
        return CONSOLIDATED.format(items=items, weight=WEIGHT, query=self.query, numbers=numbers)


@dataclass(frozen=True, slots=True)
class KeptRead:
    """What reads the increments by which kept groups are brought up to date."""

    table: KeptTable
    read: PostgresQuery


@dataclass(frozen=True, slots=True)
class FewRead:
    """Statements that read few changes as they are applied, see `FewStatements`, and the cuts that they are given.

    `keyed` reads the groups that are computed anew, `kept` the increments of those that are kept.
    """

    rows: str
    keyed: str | None
    given: Mapping[str, str | None]
    settings: tuple[str, ...]
    kept: tuple[str, ...] = ()

    @property
    def length(self) -> int:
        """How many characters of SQL they are."""
        return sum(len(text) for text in (self.rows, self.keyed or "", *self.kept))

    @property
    def keeps_plan(self) -> bool:
        """Whether PostgreSQL plans them once, however few or many changes come."""
        return KEPT_PLAN in self.settings


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """A planned refresh: exactly one of `read`, `few` and `join` is set.

    `grouping` says how Spark groups what it joined. `keyed` reads the groups that are computed anew, `staging` is the
    layout of the staging table where Spark fills one. `rounds` is how many rounds a cycle took to its fixed point,
    which this refresh stores. `choosing` are the seconds that comparing both ways took, as before the first refresh
    of its kind. `handed_on` says why Spark would join nothing if it took part. PostgreSQL may read for `most_seconds`,
    if that is limited; for `other_seconds` the other way is timed after it. `kept` read how the groups change that are
    kept, `kept_as` tells for which query they are; None where they are not brought up to date. It `may_keep` them where
    refreshes of this stream table ever do.
    """

    placement: Placement
    shape: Analysis
    ranges: tuple[ChangeRange, ...]
    apply: ApplyPlan
    read: PostgresQuery | None = None
    join: tuple[SparkTerm, ...] = ()
    grouping: SparkGrouping | None = None
    keyed: PostgresQuery | None = None
    terms: tuple[Relation, ...] = ()
    staging: str | None = None
    rounds: int | None = None
    few: FewRead | None = None
    choosing: float = 0.0
    handed_on: str = ""
    most_seconds: float | None = None
    other_seconds: float | None = None
    kept: tuple[KeptRead, ...] = ()
    kept_as: str | None = None
    may_keep: bool = False

    @property
    def action(self) -> Action:
        """Whether it takes in the delta, or computes everything."""
        return self.placement.action

    @property
    def reason(self) -> str:
        """Why it does so."""
        return self.placement.reason

    @property
    def lacks_groups(self) -> bool:
        """Whether it takes in a delta without the groups that refreshes of this stream table keep."""
        return self.action is Action.DIFFERENTIAL and self.may_keep and self.kept_as is None

    @property
    def told(self) -> str:
        """The reason, and what of it PostgreSQL computes although Spark takes part, or was to compute it."""
        if self.placement.obstacle:
            return f"{self.reason}; by PostgreSQL, {self.placement.obstacle}"
        parts = self.left_to_postgresql
        return f"{self.reason}; PostgreSQL computes {', '.join(parts)}" if parts else self.reason

    @property
    def left_to_postgresql(self) -> tuple[str, ...]:
        """What PostgreSQL computes of a refresh that Spark takes part in, and why Spark does not."""
        if self.placement.direct:
            return ()
        if not self.join:
            return (f"{HANDED_ON}{self.handed_on}",)
        grouped = self.shape.grouped is not None and self.grouping is None
        further = [LEFT_GROUPS] if grouped else []
        further += [RECOMPUTED] if self.keyed else []
        return tuple(dict.fromkeys((*sorted({frame.left for frame in reads_of(self.join)} - {""}), *further)))

    @property
    def delta_rows(self) -> int:
        """The buffered changes that this refresh takes in."""
        return sum(change_range.delta_rows for change_range in self.ranges)

    @property
    def may_be_at_once(self) -> bool:
        """Whether PostgreSQL may find the changes in the transaction that applies them, if they come to few rows.

        What a whole refresh changes is as much, or as little, however many changes wait.
        """
        few = self.delta_rows <= FEW_CHANGES or self.action is Action.FULL
        return self.placement.direct and not self.placement.stage.whole and few

    @property
    def computed_where_applied(self) -> bool:
        """Whether PostgreSQL finds them there; of more changes, rows that are copied are found before."""
        few = self.few is not None or self.delta_rows <= FEW_COPIED or self.action is Action.FULL
        return self.may_be_at_once and few

    @property
    def settings(self) -> tuple[str, ...]:
        """The planner settings under which all that PostgreSQL computes of it may be read."""
        reads = (self.read, self.keyed, self.few)
        return tuple(dict.fromkeys(setting for read in reads if read for setting in read.settings))

    @property
    def time_limit(self) -> tuple[str, ...]:
        """The setting for how long it may be read, if that is limited."""
        most = self.most_seconds
        return () if most is None else (f"SET LOCAL statement_timeout = {max(1, round(most * 1000))}",)

    @property
    def expected_settings(self) -> tuple[str, ...]:
        """The settings under which the next refresh like this one is expected to read."""
        keeps = self.read is not None and self.placement.place is Place.INDEX
        return (*self.settings, KEPT_PLAN) if keeps else self.settings

    @property
    def length(self) -> int:
        """How many characters of SQL PostgreSQL has to plan."""
        return self.few.length if self.few else sum(len(read.query) for read in (self.read, self.keyed) if read)

    def because(self, reason: str) -> "RefreshPlan":
        """Give it another reason."""
        return replace(self, placement=replace(self.placement, reason=reason))

    def alone(self, obstacle: str) -> "RefreshPlan":
        """Say why PostgreSQL computes all of it although Spark was to."""
        return replace(self, placement=replace(self.placement, obstacle=obstacle))
