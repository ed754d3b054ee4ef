"""The terms of a delta, before anything is decided about it: how they are compiled, and what they read."""

from collections.abc import Mapping

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.plan.algebra.delta import arrange, differentiate, least_parts
from pytrickle.plan.algebra.query import Query
from pytrickle.plan.algebra.relation import Operation, Relation, scans
from pytrickle.plan.missing_index import buffers_suffice, missing_below, missing_for
from pytrickle.plan.placement import Terms
from pytrickle.plan.postgres.compile import Compiler
from pytrickle.plan.postgres.kept_groups import KeptGroups
from pytrickle.plan.postgres.old_lookups import folding
from pytrickle.plan.postgres.semijoin import admissions
from pytrickle.plan.task import Task

NONE_KEPT: Mapping[Operation, KeptGroups] = {}
# Up to so many changes look row by row for what they join, even without an index: to join all at once takes longer.
FEW_ROWS = 8
# A part of a delta has so many characters for each table that it joins, or more.
LEAST_PER_TABLE = 130


def least_length(task: Task) -> int:
    """Return how many characters the SQL of a delta has at least: each part of it joins all tables of a term."""
    rows = arrange(task.query.rows, task.ranges)
    terms = differentiate(rows, frozenset(relid for relid, known in task.ranges.items() if known.changed))
    fold = folding(task.shape.definition, task.ranges)
    return LEAST_PER_TABLE * sum(least_parts(term, task.ranges, fold) * len(scans(term)) for term in terms)


def delta_compiler(
    query: Query,
    definition: Definition,
    ranges: dict[int, ChangeRange],
    kept: Mapping[Operation, KeptGroups] = NONE_KEPT,
) -> Compiler:
    """Prepare to compile the delta of a query between two frontiers."""
    changed = frozenset(relid for relid, change_range in ranges.items() if change_range.past_rows)
    few = sum(change_range.past_rows for change_range in ranges.values()) <= FEW_ROWS

    def worth_asking(operation: Operation, keys: frozenset[str]) -> bool:
        return few or operation.linear or not missing_below(operation, definition, keys)

    return Compiler(definition, ranges, admissions(query.rows, definition, changed), worth_asking, kept)


def terms_read(
    compiler: Compiler, parts: tuple[Relation, ...], spark_can: bool = False, spark_groups: bool = False
) -> Terms:
    """Describe the unfolded parts of a delta, compiled already, by what decides where they are joined."""
    alone = buffers_suffice(parts)
    missing = () if alone else missing_for(parts, compiler.definition)
    return Terms(alone, missing, compiler.reads_whole_tables, spark_can, spark_groups)
