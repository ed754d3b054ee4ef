"""How the rows that a refresh stages are applied: the SQL of the write transaction, written for an analysed query."""

from dataclasses import dataclass
from itertools import takewhile

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.delta import at
from pytrickle.plan.algebra.query import HiddenColumn, Top
from pytrickle.plan.algebra.relation import Version
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.append_mode import EventWindows
from pytrickle.plan.apply_plan import CONTENT, ApplyPlan, Body, Stage, StatePlan, Target
from pytrickle.plan.frozen_rows import FrozenRows
from pytrickle.plan.postgres.compile import compile_rows
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.few_rows import TAKEN, as_arrays, difference
from pytrickle.plan.postgres.merge_state import MergeState, state_table
from pytrickle.plan.postgres.stored_rows import Storage, body_table
from pytrickle.plan.query.first_rows import shown_rows
from pytrickle.plan.sql.dialect import quote
from pytrickle.plan.sql.types import MOST_INDEXED, is_short

SELECT = "SELECT {items} FROM {table}"
HIDDEN = "CAST(NULL AS {type}){collation} AS {name}"
KEPT = "{state}, {body}"
INDEX = "CREATE INDEX ON {table} ({columns})"


@dataclass(frozen=True, slots=True)
class Applying:
    """Writes the apply plan of one refresh.

    With `top` the staged rows are of the body that LIMIT shows the first rows of, with `window_end` a row is shown once
    the window that this column ends is closed, with `frozen_by` rows stay as they are once this column is old enough.
    `weighted` says that content comes with weights, `keyed` that some
    groups are computed anew.
    """

    shape: Analysis
    stage: Stage
    weighted: bool
    keyed: bool
    top: Top | None = None
    window_end: str | None = None
    frozen_by: str | None = None

    def plan(self) -> ApplyPlan:
        """Write it."""
        frozen = FrozenRows(self.shape.definition, self.frozen_by) if self.frozen_by else None
        pgt_id, key = self._pgt_id, frozen.key(self.shape.key) if frozen else self.shape.key
        taken = frozen.taken() if frozen else TAKEN
        after = self._after()
        return ApplyPlan(
            self.stage,
            self._storage.target(pgt_id, key, taken),
            self._shown_rows(key),
            WEIGHT,
            tuple((f"r{i}", name) for i, (name, _) in enumerate(self._stored.columns)),
            self._content_layout(),
            self._storage.replacement(after, self._is_straight) if self.stage.whole else None,
            self._state(),
            self._body(),
            EventWindows(self.shape, self.window_end, self.stage).plan(self.keyed, after) if self.window_end else None,
            frozen.withhold(self.stage.whole) if frozen else None,
            None if self.shape.query else KEPT.format(state=state_table(pgt_id), body=body_table(pgt_id)),
        )

    def staging(self) -> str:
        """Write a query with the columns of the staged rows, under their staged names."""
        if self.shape.grouped is not None and self.stage is Stage.INPUT:
            return input_layout(self.shape)
        if self.shape.grouped is not None and self.stage in {Stage.PARTS, Stage.STATE_PARTS}:
            return self.shape.grouped.parts(input_layout(self.shape))
        if self.shape.grouped is not None and self.stage in {Stage.STATE, Stage.INCREMENTS}:
            return MergeState(self.shape.grouped, self._pgt_id).staged(input_layout(self.shape))
        items = [f"{quote(name)} AS r{i}" for i, (name, _) in enumerate(self._stored.columns)]
        items += [f"CAST(NULL AS bigint) AS {WEIGHT}"] if self.weighted else []
        return SELECT.format(items=", ".join(items), table=f"({self._layout()}) AS b")

    @property
    def _pgt_id(self) -> int:
        return self.shape.definition.pgt_id

    @property
    def _stored(self) -> Definition:
        """The definition with the columns of what is maintained: the stream table, or its body."""
        return self.shape.body if self.top else self.shape.definition

    @property
    def _shown(self) -> Storage:
        return Storage.of(self.shape.definition, self.shape.hashed)

    @property
    def _storage(self) -> Storage:
        table = body_table(self._pgt_id) if self.top or self.window_end else None
        return Storage.of(self._stored, self.shape.hashed, table)

    @property
    def _is_straight(self) -> bool:
        """Whether the staged rows are those of the stream table, or of its body, just as they are stored."""
        return self.stage is Stage.CONTENT and not self.weighted

    def _shown_rows(self, key: tuple[str, ...]) -> Target:
        """Describe the stream table; of what LIMIT shows no row is found by an index, for none is created."""
        return self._shown.target(self._pgt_id, key, indexed=self.top is None)

    def _after(self) -> str:
        """Write the query for all rows that were computed anew, over the staged content or the new aggregate state."""
        if self.shape.grouped is not None and self.stage.makes_state:
            return self.shape.grouped.final(state_table(self._pgt_id))
        repeated = f", generate_series(1, {WEIGHT}) AS e (pgt_copy)" if self.weighted else ""
        return SELECT.format(items=self._storage.column_list(), table=f"pg_temp.{CONTENT}{repeated}")

    def _content_layout(self) -> str:
        if self.stage is not Stage.CONTENT:
            return ""
        storage = self._storage
        layout = storage.weighted("CAST(NULL AS bigint)") if self.weighted else storage.column_list()
        return SELECT.format(items=layout, table=storage.table)

    def _state(self) -> StatePlan | None:
        grouped = self.shape.grouped
        if self.stage in {Stage.CHANGES, Stage.CONTENT}:
            return None
        if grouped is None:
            raise TypeError(f"a plan without an aggregate stages no {self.stage}")
        merge = MergeState(grouped, self._pgt_id, self.stage is Stage.GROUPS)
        plan = merge.plan(self._storage, self.keyed)
        rows = input_layout(self.shape) if self.stage.grouped_here or self.stage.makes_state else ""
        if self.stage.makes_state:
            plan = merge.created(plan, rows)
        if self.stage is Stage.INPUT:
            return merge.from_input(plan, rows)
        return merge.from_parts(plan, rows) if self.stage.grouped_here else plan

    def _body(self) -> Body | None:
        if not (self.top or self.window_end):
            return None
        shown, body = self._shown, self._storage.table
        layout = SELECT.format(items=shown.column_list(), table=shown.table)
        first, few = None, None
        columns: tuple[str, ...] = (quote(self.window_end),) if self.window_end else ()
        if self.top:
            types = dict(self._stored.columns)
            short = takewhile(lambda item: is_short(types[item[0]]), self.top.indexed[:MOST_INDEXED])
            columns = tuple(text for _, text in short)
            rows = shown_rows(self.top, body, shown.columns)
            first = shown.stage(shown.difference(rows, layout))
            few = as_arrays(difference(rows, layout, shown.columns), shown.columns)
        index = INDEX.format(table=body, columns=", ".join(columns)) if columns else None
        return Body(body, self._layout(), index, first, few)

    def _layout(self) -> str:
        """Write a query with the columns of what is maintained, as the stream table has them, and of hidden ones."""
        hidden = self.top.hidden if self.top else ()
        items = [*self._shown.columns, *map(_empty, hidden)]
        return SELECT.format(items=", ".join(items), table=self._shown.table)


def _empty(column: HiddenColumn) -> str:
    collation = f" COLLATE {column.collation}" if column.collation else ""
    return HIDDEN.format(type=column.type_name, collation=collation, name=quote(column.name))


def input_layout(shape: Analysis) -> str:
    """Compile the rows below the aggregate at the current state, for their column types."""
    if shape.query is None:
        raise TypeError("the stream table has no differential plan")
    return compile_rows(at(shape.query.rows, Version.CURRENT), shape.definition)
