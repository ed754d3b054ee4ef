"""Planning one refresh: the delta, the rows at the new frontier, or the query as it is written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pytrickle.catalog.definition import ChangeRange
from pytrickle.plan.algebra.delta import arrange, at, differentiate, unfold_all
from pytrickle.plan.algebra.query import Query, Top
from pytrickle.plan.algebra.relation import Relation, UnionAll, Version
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.apply_plan import Action, Stage
from pytrickle.plan.applying import Applying
from pytrickle.plan.at_cut import path_of
from pytrickle.plan.delta_terms import delta_compiler, terms_read
from pytrickle.plan.kept_reads import kept_reads
from pytrickle.plan.placement import (
    PLANNER,
    SEQUENTIAL,
    SETTINGS,
    Place,
    Placement,
    Way,
    place_delta,
    place_whole,
    place_whole_in_spark,
    settings_of,
)
from pytrickle.plan.postgres.aggregate_state import Grouped
from pytrickle.plan.postgres.compile import Compiler
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.merge_state import state_table
from pytrickle.plan.postgres.old_lookups import folding
from pytrickle.plan.postgres.recompute_groups import KEYS, keyed_query
from pytrickle.plan.postgres.touched_keys import Touched
from pytrickle.plan.reading import lossy_columns, reading
from pytrickle.plan.refresh_plan import LEFT_CALLS, KeptRead, PostgresQuery, RefreshPlan
from pytrickle.plan.spark.grouping import SparkGrouping, spark_grouping
from pytrickle.plan.spark.leaves import NothingToJoin, SparkTerm
from pytrickle.plan.spark.outputs import Carriers
from pytrickle.plan.spark.terms import Wanted, spark_terms
from pytrickle.plan.sql.types import as_number
from pytrickle.plan.task import Task
from pytrickle.plan.whole_rows import rows_of, whole_rows

WHOLE = "SELECT {items} FROM (\n{query}\n) AS pgt_full({columns})"
# Rows without columns can be counted, but not read.
COUNTED = "SELECT count(*) AS {weight} FROM (\n{query}\n) AS pgt_full"
AS_WRITTEN = "the query is read as it is written"
NEEDS_TABLE = "its rows would need a staging table"


@dataclass(frozen=True, slots=True)
class Reads:
    """What a refresh reads: one query, or terms that Spark joins and may group; and the groups computed anew.

    `handed_on` says why Spark joins nothing of one query, `kept` what groups that are kept are brought up to date by.
    """

    read: PostgresQuery | None = None
    join: tuple[SparkTerm, ...] = ()
    grouping: SparkGrouping | None = None
    keyed: PostgresQuery | None = None
    terms: tuple[Relation, ...] = ()
    top: Top | None = None
    handed_on: str = ""
    kept: tuple[KeptRead, ...] | None = None


def plan_refresh(
    task: Task, way: Way, refresh_mode: str, as_written: Callable[[], str], delta: RefreshPlan | None = None
) -> RefreshPlan:
    """Plan what was decided; `as_written` reads the defining query at the new frontier.

    `delta` is the plan for the changes, where it was made already.
    """
    if way.action is Action.DIFFERENTIAL:
        return delta.because(way.reason) if delta else plan_differential(task, way)
    # A query that reads no table is computed as it is written, so that rows that tie come in the query's own order.
    if task.shape.query is not None and task.shape.definition.sources and refresh_mode != "FULL":
        return plan_initial(task, way)
    return plan_full(task, as_written(), way)


def plan_differential(task: Task, way: Way) -> RefreshPlan:
    """Plan the delta between two frontiers."""
    query, shape, ranges = task.query, task.shape, task.ranges
    rows = arrange(query.rows, ranges)
    terms = differentiate(rows, frozenset(relid for relid, change_range in ranges.items() if change_range.changed))
    parts = unfold_all(terms, ranges, task.kept.keys(), fold=folding(shape.definition, ranges))
    compiler = delta_compiler(query, shape.definition, ranges, task.kept)
    delta = rows_of(compiler, parts, shape)
    allowed = task.limits.let_spark_join(task.delta_rows)
    grouping = spark_grouping(shape.grouped, shape.spark_sums) if shape.grouped else None
    joinable = _joinable(task, terms, grouping is not None) if allowed else None
    read = terms_read(compiler, parts, bool(joinable), grouping is not None)
    placement = place_delta(way, read, shape.grouped is not None, task.delta_rows, task.limits)
    keyed = _keyed(shape, compiler, delta)
    if placement.place is Place.SPARK and joinable:
        return planned(task, placement, Reads(None, joinable, grouping, keyed, terms, query.top))
    under = settings_of(placement.place, task.delta_rows)
    unjoined = isinstance(joinable, NothingToJoin) and not read.buffers_only and joinable.why
    why = unjoined or str(placement.place_reason)
    if shape.grouped is None:
        found = reading(compiler.within(delta), query.row_columns, lossy_columns(shape), under, True)
    else:
        increments = compiler.within(shape.grouped.increments(delta))
        found = reading(increments, _increment_columns(shape.grouped), lossy_columns(shape), under)
    kept = kept_reads(task, under) if placement.direct else None
    return planned(task, placement, Reads(found, keyed=keyed, terms=terms, top=query.top, handed_on=why, kept=kept))


def plan_initial(task: Task, way: Way) -> RefreshPlan:
    """Plan the first load, or the reinitialization, of a differentiable stream table at its new frontier."""
    query, shape = task.query, task.shape
    in_spark = _whole_in_spark(task, way)
    if isinstance(in_spark, RefreshPlan):
        return in_spark
    whole, settings = whole_rows(task), PLANNER + SETTINGS[Place.POSTGRES]
    compiler, rows = whole.compiler, whole.rows
    grouped, lossy = shape.grouped, lossy_columns(shape)
    placement = place_whole(way, Stage.STATE if grouped else Stage.CONTENT, task.rows_read, task.limits)
    if grouped is None:
        weighted = not whole.plain or not query.row_columns
        read = reading(compiler.within(rows), query.row_columns, lossy, settings, weighted)
        return planned(task, placement, Reads(read, top=query.top, handed_on=in_spark))
    increments = compiler.within(grouped.increments(rows, whole.plain))
    read = reading(increments, _increment_columns(grouped), lossy, settings)
    values = _values(task, (compiler, rows))
    return planned(task, placement, Reads(read, keyed=values, top=query.top, handed_on=in_spark))


def _whole_in_spark(task: Task, way: Way) -> RefreshPlan | str:
    """Plan that Spark computes everything from the sources; or say why PostgreSQL does, if Spark reads the result."""
    query, shape = task.query, task.shape
    grouping = spark_grouping(shape.grouped, shape.spark_sums) if shape.grouped else None
    if not task.limits.let_spark_compute_all:
        return "a whole refresh is Spark's with the engine spark alone"
    if shape.grouped and grouping is None:
        return LEFT_CALLS
    terms = (at(query.rows, Version.NEW),)
    joinable = _joinable(task, terms, grouping is not None, whole=True)
    placement = place_whole_in_spark(way, grouping is not None, task.rows_read, task.limits)
    if isinstance(joinable, NothingToJoin):
        return joinable.why
    if placement is None:
        return NEEDS_TABLE
    return planned(task, placement, Reads(None, joinable, grouping, _values(task), terms, query.top))


def _values(task: Task, compiled: tuple[Compiler, str] | None = None) -> PostgresQuery | None:
    """Read the values of all groups that increments do not give.

    `compiled` has the rows below and the compiler with their WITH list, where they are compiled already.
    """
    query, shape, ranges = task.query, task.shape, task.ranges
    grouped = shape.grouped
    if grouped is None or len(grouped.values) == len(grouped.extrema):
        return None
    relation, placed = _recomputable(query, ranges)
    if compiled and not placed:
        compiler, rows = compiled
    else:
        compiler = Compiler(shape.definition, ranges, most_parts=1)
        rows = rows_of(compiler, unfold_all((at(relation, Version.NEW),), ranges, most=1), shape)
    settings = PLANNER + SETTINGS[Place.POSTGRES]
    values = compiler.within(grouped.recomputed(rows, placed))
    return reading(values, _value_columns(grouped), lossy_columns(shape), settings)


def settings_as_written(shape: Analysis) -> tuple[str, ...]:
    """List the settings for a query as it is written: where the order of rows may show, a single process reads them."""
    return PLANNER if shape.any_order else (*PLANNER, *SEQUENTIAL)


def plan_full(task: Task, query: str, way: Way) -> RefreshPlan:
    """Plan the evaluation of `query`, the defining query at the new frontier, as a whole."""
    definition = task.shape.definition
    columns = tuple(f"r{i}" for i in range(len(definition.columns)))
    numbers = {name: as_number(type_name) for name, (_, type_name) in zip(columns, definition.columns, strict=True)}
    # The query may be evaluated under its creator's path, by which nothing is found where its rows are read.
    items = ", ".join(f"CAST({name} AS {number}) AS {name}" if number else name for name, number in numbers.items())
    text = (WHOLE if columns else COUNTED).format(query=query, columns=", ".join(columns), items=items, weight=WEIGHT)
    settings = (*settings_as_written(task.shape), *path_of(definition, query))
    read = reading(text, columns, lossy_columns(task.shape), settings, weighted=not columns)
    placement = place_whole(way, Stage.CONTENT, task.rows_read, task.limits)
    return planned(task, placement, Reads(read, handed_on=AS_WRITTEN))


def planned(task: Task, placement: Placement, reads: Reads) -> RefreshPlan:
    weighted = bool(reads.join) or (reads.read is not None and reads.read.weighted)
    shape, keyed = task.applied or task.shape, reads.keyed is not None
    applying = Applying(shape, placement.stage, weighted, keyed, reads.top, task.window_end, task.frozen_by)
    staging = applying.staging() if placement.staging_table else None
    ranges = tuple(task.ranges.values())
    apply = applying.plan()
    return RefreshPlan(
        placement,
        shape,
        ranges,
        apply,
        reads.read,
        reads.join,
        reads.grouping,
        reads.keyed,
        reads.terms,
        staging,
        handed_on=reads.handed_on,
        kept=reads.kept or (),
        kept_as=None if reads.kept is None else shape.kept_as,
        may_keep=task.may_keep,
    )


def _joinable(
    task: Task, terms: tuple[Relation, ...], groups: bool, whole: bool = False
) -> tuple[SparkTerm, ...] | NothingToJoin:
    """Return the terms as Spark would join them, if it can; if it `groups` them, with the columns for that."""
    carriers = Carriers(task.shape.grouped if groups else None, lossy_columns(task.shape))
    wanted = Wanted(whole, task.limits.spark, task.shape.spark_sums)
    return spark_terms(terms, task.shape.definition, task.ranges, carriers, wanted)


def _keyed(shape: Analysis, compiler: Compiler, delta: str) -> PostgresQuery | None:
    if shape.grouped is None or not shape.grouped.values or shape.query is None:
        return None
    keyed = compiler.copy()
    relation, placed = _recomputable(shape.query, compiler.ranges)
    parts = UnionAll(unfold_all((at(relation, Version.NEW),), compiler.ranges, compiler.kept.keys()))
    keys = shape.grouped.keys
    new = keyed.rows(parts, frozenset(keys))
    if keys:
        touched = Touched(KEYS, keys)
        new = touched.restricted(keyed.rows(parts, touched=touched), new)
    values = shape.grouped.recomputed(new, placed)
    entries, query = keyed_query(shape.grouped, delta, values, state_table(shape.definition.pgt_id))
    keyed.entries.update(entries)
    settings = PLANNER + SETTINGS[Place.POSTGRES]
    return reading(keyed.within(query), _value_columns(shape.grouped), lossy_columns(shape), settings)


def _recomputable(query: Query, ranges: Mapping[int, ChangeRange]) -> tuple[Relation, bool]:
    """Return the rows from which groups are recomputed, and whether they show their places.

    A row that is not there any more, but belongs to the state at the new frontier, has no place.
    """
    beyond = any(change_range.future_rows for change_range in ranges.values())
    return (query.rows, False) if query.placed is None or beyond else (query.placed, True)


def _increment_columns(grouped: Grouped) -> tuple[str, ...]:
    return grouped.keys + tuple(column.name for column in grouped.merged)


def _value_columns(grouped: Grouped) -> tuple[str, ...]:
    return grouped.keys + tuple(column.name for column in grouped.values)
