"""Operations that Spark computes from their input: at the new frontier, or d op(R) = op(NEW|K) - op(OLD|K)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.plan.algebra.constructs.distinct import Distinct
from pytrickle.plan.algebra.constructs.distinct_on import DistinctOn
from pytrickle.plan.algebra.constructs.domain import Domain
from pytrickle.plan.algebra.constructs.exists import Exists
from pytrickle.plan.algebra.constructs.first_rows import FirstRows
from pytrickle.plan.algebra.constructs.group import Group
from pytrickle.plan.algebra.constructs.set_operation import SetOperation
from pytrickle.plan.algebra.constructs.window import Window
from pytrickle.plan.algebra.delta import arrange, at, blocks_of, differentiate
from pytrickle.plan.algebra.relation import Derived, Relation, Version, leaves
from pytrickle.plan.postgres.aggregate import is_numeric
from pytrickle.plan.spark.leaves import Computed, SparkTerm, only_add
from pytrickle.plan.spark.on_grid import NO_GRIDS, OntoGrid
from pytrickle.plan.spark.operations.arguments import with_computed_arguments
from pytrickle.plan.spark.operations.counted import counted
from pytrickle.plan.spark.operations.grouped import grouped
from pytrickle.plan.spark.operations.input import InputCarriers, LeftToPostgres
from pytrickle.plan.spark.operations.touched import touching
from pytrickle.plan.spark.operations.values import ROWS, consolidated
from pytrickle.plan.spark.operations.windowed import windowed
from pytrickle.plan.spark.outputs import Carrying

Translate = Callable[[tuple[Relation, ...], Carrying], tuple[SparkTerm, ...] | None]


@dataclass(frozen=True, slots=True)
class Operations:
    """Computes operations between two frontiers, over terms that `translate` makes of their inputs.

    Without `sums` groups and windows with numerics are left to PostgreSQL.
    """

    definition: Definition
    ranges: Mapping[int, ChangeRange]
    translate: Translate
    sums: bool = True

    def compute(
        self, derived: Derived, asked: Mapping[str, str], where: str = "", grids: Mapping[str, OntoGrid] = NO_GRIDS
    ) -> Computed:
        """Return how Spark computes what is asked of an operation at its version, where a condition holds of it.

        `grids` are those that some of the asked columns are put onto, by their names.
        Raise LeftToPostgres if it cannot do so exactly, or should not.
        """
        derived = with_computed_arguments(derived, self.definition)
        rows, over = self._rule(derived, asked, where, grids)
        relation = derived.operation.input
        now = blocks_of(at(relation, Version.NEW))
        changed: tuple[Relation, ...] = ()
        if derived.version is Version.DELTA:
            now = touching(derived.operation, now, self.definition, self.ranges)
            changed = self._delta(relation)
        if not all(leaves(block) for part in (*now, *changed) for block in blocks_of(part)):
            raise LeftToPostgres("has rows of no table")
        terms = self.translate((*now, *changed), rows)
        if terms is None:
            raise LeftToPostgres("reads what PostgreSQL has to join")
        keys = tuple(f"{key}_0" for key in derived.operation.keys)
        parts = terms[: len(now)], terms[len(now) :]
        if isinstance(derived.operation.construct, Group) and not only_add(terms):
            over = over.replace(ROWS, consolidated(", ".join(rows.columns)))
        return Computed(derived.alias, derived.version, *parts, keys, rows.columns, over)

    def _rule(
        self, derived: Derived, asked: Mapping[str, str], where: str, grids: Mapping[str, OntoGrid]
    ) -> tuple[InputCarriers, str]:
        construct = derived.operation.construct
        # What first rows are sorted by is not among what they show.
        numerics = not isinstance(construct, Group | Window) or any(map(is_numeric, derived.operation.types))
        match construct:
            case Distinct() | Domain() | Exists() | SetOperation():
                return counted(derived, asked, where, self.definition)
            case Group() | Window() | FirstRows() | DistinctOn() if numerics and not self.sums:
                raise LeftToPostgres("was too wide for Spark's decimals before")
            case Window() | FirstRows() | DistinctOn():
                return windowed(derived, asked, where, self.definition)
            case Group():
                return grouped(derived, asked, where, self.definition, grids)
            case _:
                raise LeftToPostgres("has no rule for Spark")

    def _delta(self, relation: Relation) -> tuple[Relation, ...]:
        changed = frozenset(relid for relid, change_range in self.ranges.items() if change_range.changed)
        return differentiate(arrange(relation, self.ranges), changed)
