"""One refresh as data: what is read where, how it is staged, and how it is applied."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.plan.algebra.delta import arranged, at, blocks_of, differentiate, unfolded
from pytrickle.plan.algebra.relation import Query, Relation, Top, UnionAll, Version, operations
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.at_cut import path_of
from pytrickle.plan.placement import PLANNER, SEQUENTIAL, SETTINGS, Place, Placement, choose
from pytrickle.plan.postgres.aggregate_state import Grouped
from pytrickle.plan.postgres.compile import Compiler, compile_rows
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.recompute_groups import KEYS, keyed_query
from pytrickle.plan.postgres.semijoin import admissions
from pytrickle.plan.postgres.text import as_text, carried, cast_may_lose
from pytrickle.plan.postgres.touched_keys import Touched
from pytrickle.plan.spark.terms import SparkTerm, spark_terms

BULK_ROWS = 1_000_000


class Action(StrEnum):
    """What a refresh did."""

    NO_DATA = "NO_DATA"
    DIFFERENTIAL = "DIFFERENTIAL"
    FULL = "FULL"
    REINITIALIZE = "REINITIALIZE"
    SKIP = "SKIP"
    FAILED = "FAILED"


class Stage(StrEnum):
    """What the staged rows are.

    CHANGES are weighted rows of the stream table, CONTENT its whole new content, INPUT weighted rows below the
    aggregate, INCREMENTS the groups' increments, and STATE the whole new aggregate state.
    """

    CHANGES = "changes"
    CONTENT = "content"
    INPUT = "input"
    INCREMENTS = "increments"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class PostgresQuery:
    """One JDBC read: a query whose columns are all text but the weight, and the planner settings for it."""

    query: str
    columns: tuple[str, ...]
    weighted: bool
    settings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """A planned refresh. Exactly one of `read` and `join` is set, unless there is nothing to do.

    With `top`, what is staged is the body that LIMIT shows the first rows of. `direct` says that the refresher reads
    the rows itself: PostgreSQL computes them wholly, and they are too few to be worth a job of Spark's.
    """

    action: Action
    reason: str
    shape: Analysis
    windows: tuple[ChangeRange, ...]
    stage: Stage = Stage.CHANGES
    read: PostgresQuery | None = None
    join: tuple[SparkTerm, ...] = ()
    keyed: PostgresQuery | None = None
    placement: Placement | None = None
    terms: tuple[Relation, ...] = ()
    top: Top | None = None
    direct: bool = False

    @property
    def delta_rows(self) -> int:
        """The buffered changes that this refresh takes in."""
        return sum(window.delta_rows for window in self.windows)

    @property
    def bulk(self) -> bool:
        """Whether the result may be too large for one process, so that Spark writes it to a staging table."""
        if self.direct:
            return False
        read = self.delta_rows
        if self.stage in {Stage.CONTENT, Stage.STATE}:
            read += sum(source.estimated_rows for source in self.shape.definition.sources)
        return read > BULK_ROWS


def plan_differential(shape: Analysis, windows: dict[int, ChangeRange], small: int, state: str) -> RefreshPlan:
    """Plan the delta between two frontiers; `state` is the aggregate state table's name.

    Up to `small` changed rows are joined by index lookups in PostgreSQL where indexes allow it.
    """
    query = _differentiable(shape)
    rows = arranged(query.rows, windows)
    terms = differentiate(rows, frozenset(relid for relid, window in windows.items() if window.delta_rows))
    parts = unfolded(terms, windows)
    delta_rows = sum(window.delta_rows for window in windows.values())
    lossy = _lossy(shape)
    joined = tuple(carried(block, lossy) for term in terms for block in blocks_of(term))
    joinable = spark_terms(joined, shape.definition, windows) if delta_rows > small else None
    placement = choose(parts, shape.definition, delta_rows, small, joinable is not None)
    compiler = delta_compiler(query, shape.definition, windows)
    delta = rows_of(compiler, parts, shape)
    if compiler.reads_whole_tables and placement.place is Place.INDEX:
        placement = Placement(Place.POSTGRES, "a part of the query is computed for all keys")
    plan = RefreshPlan(
        Action.DIFFERENTIAL,
        f"{delta_rows} changed rows",
        shape,
        tuple(windows.values()),
        keyed=_keyed(shape, compiler, delta, state),
        placement=placement,
        terms=terms,
        top=query.top,
    )
    if placement.place is Place.SPARK and joinable:
        return replace(plan, stage=Stage.INPUT if shape.grouped else Stage.CHANGES, join=joinable)
    settings = PLANNER + SETTINGS[placement.place]
    if shape.grouped is None:
        return replace(plan, read=_reading(compiler.within(delta), query.row_columns, lossy, settings, True))
    increments = compiler.within(shape.grouped.increments(delta))
    read = _reading(increments, _increment_columns(shape.grouped), lossy, settings)
    return replace(plan, stage=Stage.INCREMENTS, read=read)


def delta_compiler(query: Query, definition: Definition, windows: dict[int, ChangeRange]) -> Compiler:
    """Prepare to compile the delta of a query between two frontiers."""
    changed = frozenset(relid for relid, window in windows.items() if window.past_rows)
    return Compiler(definition, windows, admissions(query.rows, definition, changed))


def plan_initial(shape: Analysis, windows: dict[int, ChangeRange], action: Action, reason: str) -> RefreshPlan:
    """Plan the first load, or the reinitialization, of a differentiable stream table at its new frontier."""
    query = _differentiable(shape)
    compiler = Compiler(shape.definition, windows)
    as_written = None if shape.definition.wrapped else _as_written(query, windows)
    rows = as_written or rows_of(compiler, unfolded((at(query.rows, Version.NEW),), windows), shape)
    settings = PLANNER + SETTINGS[Place.POSTGRES]
    plan = RefreshPlan(action, reason, shape, tuple(windows.values()), Stage.CONTENT, top=query.top)
    grouped, lossy = shape.grouped, _lossy(shape)
    if grouped is None:
        return replace(plan, read=_reading(compiler.within(rows), query.row_columns, lossy, settings, True))
    read = _reading(compiler.within(grouped.increments(rows)), _increment_columns(grouped), lossy, settings)
    keyed = None
    if len(grouped.values) > len(grouped.extrema):
        relation, placed = _recomputable(query, windows)
        if placed:
            rows = rows_of(compiler, unfolded((at(relation, Version.NEW),), windows), shape)
        keyed = _reading(compiler.within(grouped.recomputed(rows, placed)), _value_columns(grouped), lossy, settings)
    return replace(plan, stage=Stage.STATE, read=read, keyed=keyed)


def _as_written(query: Query, windows: dict[int, ChangeRange]) -> str | None:
    """Read all rows by the user's own text, which PostgreSQL plans best, unless rows or their order differ from it."""
    found = operations(query.rows)
    settled = found and not any(operation.ordered or operation.tied for operation in found)
    if query.text is None or not settled or any(window.new and window.future_rows for window in windows.values()):
        return None
    names = f"({', '.join(query.row_columns)})" if query.row_columns else ""
    return f"SELECT q.*, CAST(1 AS bigint) AS {WEIGHT} FROM (\n{query.text}\n) AS q{names}"


def plan_full(shape: Analysis, query: str, windows: dict[int, ChangeRange], action: Action, reason: str) -> RefreshPlan:
    """Plan the evaluation of `query`, the defining query at the new frontier, as a whole."""
    names = [name for name, _ in shape.definition.columns]
    aliases = ", ".join(f"r{i}" for i in range(len(names)))
    text = f"SELECT * FROM (\n{query}\n) AS pgt_full({aliases})"
    if not names:
        # Rows without columns can be counted, but not read.
        text = f"SELECT count(*) AS {WEIGHT} FROM (\n{query}\n) AS pgt_full"
    columns = tuple(f"r{i}" for i in range(len(names)))
    settings = (*PLANNER, *SEQUENTIAL, *path_of(shape.definition))
    read = _reading(text, columns, _lossy(shape), settings, weighted=not names)
    return RefreshPlan(action, reason, shape, tuple(windows.values()), Stage.CONTENT, read=read)


def input_layout(shape: Analysis) -> str:
    """Compile the rows below the aggregate at the current state, for their column types."""
    return compile_rows(at(_differentiable(shape).rows, Version.CURRENT), shape.definition)


def _differentiable(shape: Analysis) -> Query:
    if shape.query is None:
        raise TypeError("the stream table has no differential plan")
    return shape.query


def rows_of(compiler: Compiler, parts: tuple[Relation, ...], shape: Analysis) -> str:
    """Compile the weighted rows below the aggregate; none where there are no parts."""
    if not parts:
        # What changed is named only by an unused WITH entry.
        return f"SELECT * FROM (\n{input_layout(shape)}\n) AS q WHERE false"
    return compiler.rows(UnionAll(parts))


def _keyed(shape: Analysis, compiler: Compiler, delta: str, state: str) -> PostgresQuery | None:
    if shape.grouped is None or not shape.grouped.values or shape.query is None:
        return None
    keyed = compiler.copy()
    relation, placed = _recomputable(shape.query, compiler.windows)
    parts = UnionAll(unfolded((at(relation, Version.NEW),), compiler.windows))
    keys = shape.grouped.keys
    new = keyed.rows(parts, frozenset(keys))
    if keys:
        touched = Touched(KEYS, keys)
        new = touched.restricted(keyed.rows(parts, touched=touched), new)
    entries, query = keyed_query(shape.grouped, delta, shape.grouped.recomputed(new, placed), state)
    keyed.entries.update(entries)
    settings = PLANNER + SETTINGS[Place.POSTGRES]
    return _reading(keyed.within(query), _value_columns(shape.grouped), _lossy(shape), settings)


def _recomputable(query: Query, windows: Mapping[int, ChangeRange]) -> tuple[Relation, bool]:
    """Return the rows from which groups are recomputed, and whether they show their places.

    A row that is not there any more, but belongs to the state at the new frontier, has no place.
    """
    beyond = any(window.future_rows for window in windows.values())
    return (query.rows, False) if query.placed is None or beyond else (query.placed, True)


def _increment_columns(grouped: Grouped) -> tuple[str, ...]:
    return grouped.keys + tuple(column.name for column in grouped.merged)


def _value_columns(grouped: Grouped) -> tuple[str, ...]:
    return grouped.keys + tuple(column.name for column in grouped.values)


def _lossy(shape: Analysis) -> frozenset[str]:
    """Name the columns whose cast to text may lose something; which type a minimum has is left open."""
    types = {f"r{i}": type_name for i, (_, type_name) in enumerate(shape.definition.columns)}
    grouped = shape.grouped
    types |= dict(grouped.types) if grouped else {}
    values = {column.name for column in grouped.values} if grouped else set()
    return frozenset(values | {name for name, type_name in types.items() if cast_may_lose(type_name)})


def _reading(
    query: str, columns: tuple[str, ...], lossy: frozenset[str], settings: tuple[str, ...], weighted: bool = False
) -> PostgresQuery:
    items = [f"{as_text(f'q.{column}', column in lossy)} AS {column}" for column in columns]
    items += [f"q.{WEIGHT}"] if weighted else []
    return PostgresQuery(f"SELECT {', '.join(items)}\nFROM (\n{query}\n) AS q", columns, weighted, settings)
