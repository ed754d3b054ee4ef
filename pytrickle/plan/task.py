"""What one refresh has to do: which query, between which frontiers, by which limits."""

from dataclasses import dataclass, replace

from pytrickle.catalog.definition import ChangeRange
from pytrickle.config import EngineName
from pytrickle.plan.algebra.query import Query
from pytrickle.plan.algebra.relation import Operation
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.limits import Limits
from pytrickle.plan.postgres.kept_groups import KeptGroups


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be refreshed: an analysed query between the frontiers of some ranges, and by which limits.

    `applied` is what the rows are applied to, where that is not what they are read from: members of a cycle are read
    from stand-ins. With `window_end` a row is shown once the window that this column ends is closed, with `frozen_by`
    rows stay as they are once this column is old enough. It `may_keep` the groups within the query, and `keeps` them
    where those of the old frontier are stored.
    """

    shape: Analysis
    ranges: dict[int, ChangeRange]
    limits: Limits
    window_end: str | None = None
    applied: Analysis | None = None
    frozen_by: str | None = None
    may_keep: bool = False
    keeps: bool = False

    @property
    def query(self) -> Query:
        """The algebra, of a query that has delta rules."""
        if self.shape.query is None:
            raise TypeError("the stream table has no differential plan")
        return self.shape.query

    @property
    def kept(self) -> dict[Operation, KeptGroups]:
        """The operations whose groups at the old frontier are stored."""
        return {each.operation: each for each in self.shape.kept} if self.keeps else {}

    @property
    def delta_rows(self) -> int:
        """The buffered changes of all sources."""
        return sum(change_range.delta_rows for change_range in self.ranges.values())

    @property
    def rows_read(self) -> int:
        """About how many rows a whole refresh reads."""
        return self.delta_rows + sum(source.estimated_rows for source in self.shape.definition.sources)

    def preferring(self, engine: EngineName, reason: str) -> "Task":
        """Let an engine compute it, for what was measured."""
        return replace(self, limits=self.limits.prefer(engine, reason))
