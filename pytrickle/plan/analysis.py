"""A definition analysed once: its algebra and state layout, or the reason why it refreshes FULL."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from logging import getLogger

from sqlglot.errors import SqlglotError

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.delta import at
from pytrickle.plan.algebra.query import Aggregate, Query
from pytrickle.plan.algebra.relation import Version, operations
from pytrickle.plan.kept_operations import kept_groups
from pytrickle.plan.postgres.aggregate import is_exact as adds_exactly
from pytrickle.plan.postgres.aggregate_state import Grouped
from pytrickle.plan.postgres.compile import compile_rows
from pytrickle.plan.postgres.kept_groups import KeptGroups, fingerprint
from pytrickle.plan.postgres.length import TOO_LONG
from pytrickle.plan.query.defining_query import parse
from pytrickle.plan.query.hidden_order import body_of
from pytrickle.plan.query.probe import Probe, hashed_columns
from pytrickle.plan.sql.rounding import ROUNDING, refuse_rounding
from pytrickle.plan.sql.types import is_exact, is_short

STUMBLES = (
    SqlglotError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is fixed about a stream table until its definition changes: its algebra, or why it has none.

    `defect` names what the planner failed on, though it should not: that is logged with its traceback.
    Without `spark_sums` PostgreSQL adds up and sorts numerics, of which Spark found some too wide. `kept` are the
    groups within the query that are kept in tables of their own, and `kept_as` tells whether tables are those of this
    query.
    `too_long` are sets of sources, of which the delta is too long to be written where all of them changed.
    """

    definition: Definition
    query: Query | None
    grouped: Grouped | None
    full_reason: str | None
    hashed: tuple[str, ...]
    defect: str | None = None
    spark_sums: bool = True
    kept: tuple[KeptGroups, ...] = ()
    kept_as: str | None = None
    too_long: frozenset[frozenset[int]] = frozenset()

    def without_delta(self, ranges: Iterable[ChangeRange]) -> "Analysis":
        """Remember that the delta of these changed sources is too long."""
        return replace(self, too_long=self.too_long | {_changed(ranges)})

    def why_whole(self, ranges: Iterable[ChangeRange]) -> str | None:
        """Return why a refresh has to be whole: there is no delta rule, or the delta of what changed is too long."""
        changed = _changed(ranges)
        return self.full_reason or (TOO_LONG if any(known <= changed for known in self.too_long) else None)

    @property
    def any_order(self) -> bool:
        """Whether the query is known to show the same rows in whatever order PostgreSQL reads those of its sources.

        Which of several equal values a part has does not matter where none of these is shown, for nothing tells them
        apart. By increments either may be shown, too.
        """
        if self.query is None or self.query.top or (self.grouped and self.grouped.takes_places):
            return False
        found = operations(self.query.rows)
        chooses = bool(self.query.representatives) and any(operation.depends_on_order for operation in found)
        return not chooses and all(operation.takes_any_order for operation in found)

    @property
    def body(self) -> Definition:
        """The definition with the columns of the rows that are maintained: what LIMIT sorts by is not always shown."""
        top = self.query.top if self.query else None
        return body_of(self.definition, top.hidden) if top else self.definition

    @property
    def key(self) -> tuple[str, ...]:
        """The stream table's columns that show all group keys, where their types are short enough for an index."""
        if self.grouped is None or not self.grouped.keys:
            return ()
        shown = dict(self.grouped.aggregate.shown_keys)
        types = dict(self.definition.columns)
        names = [shown[key] for key in self.grouped.keys if shown.get(key) in types]
        complete = len(names) == len(self.grouped.keys) and all(is_short(types[name]) for name in names)
        return tuple(names) if complete else ()


def _changed(ranges: Iterable[ChangeRange]) -> frozenset[int]:
    return frozenset(change_range.relid for change_range in ranges if change_range.changed)


def analyse(definition: Definition, probe: Probe) -> Analysis:
    """Analyse a definition; a query without delta rules yields a shape with a reason instead of algebra."""
    hashed = hashed_columns(definition.columns, definition, probe)
    try:
        query = parse(definition, probe)
        grouped, kept = _grouped(query, definition, probe), kept_groups(query, definition, probe)
        kept_as = fingerprint(kept) if kept else None
        return Analysis(definition, query, grouped, None, hashed, kept=kept, kept_as=kept_as)
    except NotDifferentiable as error:
        return Analysis(definition, None, None, str(error), hashed)
    except STUMBLES as error:
        # A query on which the planner itself fails is still answered, by PostgreSQL as a whole.
        getLogger(__name__).error("The planner fails on %s", definition.qualified_name, exc_info=error)
        reason = f"a construct on which the planner fails ({error!r})"
        return Analysis(definition, None, None, reason, hashed, repr(error))


def _grouped(query: Query, definition: Definition, probe: Probe) -> Grouped | None:
    # The types are asked for in any case, so that a text that PostgreSQL does not accept never becomes a refresh.
    rows = compile_rows(at(query.rows, Version.CURRENT), definition)
    names = query.row_columns
    types = probe.column_types(rows)[: len(names)]
    if query.aggregate is None:
        return None
    by_name = dict(zip(names, types, strict=True))
    _refuse_order_dependence(query.aggregate, rows, by_name, probe)
    hashable = hashed_columns(tuple(by_name.items()), definition, probe)
    exact = frozenset(name for name, type_name in by_name.items() if is_exact(type_name, definition))
    grouped = Grouped.of(query.aggregate, by_name, frozenset(hashable), exact)
    probe.column_types(grouped.final(f"(\n{grouped.layout(rows)}\n) AS s"))
    return grouped


def _refuse_order_dependence(aggregate: Aggregate, rows: str, types: dict[str, str], probe: Probe) -> None:
    """Adding floating-point numbers in another order gives other last digits, so no delta can be exact."""
    for call in aggregate.calls:
        written = call.written or f"{call.function}(d.{call.argument})"
        function = written.partition("(")[0].lower()
        if not function.startswith(ROUNDING) or (call.argument and adds_exactly(types[call.argument])):
            continue
        (result,) = probe.column_types(f"SELECT {written} FROM (\n{rows}\n) AS d")
        refuse_rounding(function, result)
