"""What reads the groups within a query that are kept: how they change, or all of them."""

from pytrickle.catalog.definition import ChangeRange
from pytrickle.plan.algebra.delta import at
from pytrickle.plan.algebra.relation import UnionAll, Version
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.placement import PLANNER, SETTINGS, Place
from pytrickle.plan.postgres.compile import Compiler
from pytrickle.plan.postgres.kept_groups import KeptGroups
from pytrickle.plan.postgres.text import cast_may_lose
from pytrickle.plan.reading import reading
from pytrickle.plan.refresh_plan import KeptRead
from pytrickle.plan.task import Task


def kept_reads(task: Task, settings: tuple[str, ...]) -> tuple[KeptRead, ...] | None:
    """Read the increments of the groups that are kept, of those whose sources changed; None where none are kept."""
    if not task.keeps:
        return None
    changed = frozenset(relid for relid, change_range in task.ranges.items() if change_range.changed)
    return tuple(_kept_read(task, kept, settings) for kept in task.kept.values() if kept.reads & changed)


def filling(shape: Analysis, ranges: dict[int, ChangeRange], kept: KeptGroups) -> KeptRead:
    """Read all groups of an operation at the old frontier of some ranges, to keep them."""
    compiler = Compiler(shape.definition, ranges)
    rows = compiler.rows(UnionAll(compiler.parts(at(kept.operation.input, Version.OLD))))
    settings = PLANNER + SETTINGS[Place.POSTGRES]
    return _reading(kept, compiler.within(kept.whole(rows)), kept.columns, settings)


def _kept_read(task: Task, kept: KeptGroups, settings: tuple[str, ...]) -> KeptRead:
    query = Compiler(task.shape.definition, task.ranges).taken_in(kept)
    return _reading(kept, query, kept.grouped.columns, settings)


def _reading(kept: KeptGroups, query: str, columns: tuple[str, ...], settings: tuple[str, ...]) -> KeptRead:
    lossy = frozenset(name for name, type_name in kept.grouped.types if cast_may_lose(type_name))
    return KeptRead(kept.plan, reading(query, columns, lossy, settings))
