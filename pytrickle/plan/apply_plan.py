"""How computed rows get into a stream table, as data: the SQL of the write transaction, written before it begins."""

from dataclasses import dataclass
from enum import StrEnum

# The temporary tables of the write transaction.
CHANGES = "pgt_changes"
CONTENT = "pgt_content"
INPUT = "pgt_input"
INCREMENTS = "pgt_increments"
KEYED = "pgt_keyed"
BEFORE = "pgt_before"
AFTER = "pgt_after"
# Which part of Spark's result a row of the staging table belongs to.
PART = "pgt_part"


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
    aggregate, PARTS parts of the groups' increments, INCREMENTS these increments, GROUPS the new state of the groups
    whose state differs, and STATE the whole new aggregate state. STATE_PARTS are parts of that.
    """

    CHANGES = "changes"
    CONTENT = "content"
    INPUT = "input"
    PARTS = "parts"
    INCREMENTS = "increments"
    GROUPS = "groups"
    STATE = "state"
    STATE_PARTS = "state parts"

    @property
    def grouped_here(self) -> bool:
        """Whether the write transaction computes the increments from the staged rows."""
        return self in {Stage.INPUT, Stage.PARTS, Stage.STATE_PARTS}

    @property
    def makes_state(self) -> bool:
        """Whether a new aggregate state is filled from the staged rows."""
        return self in {Stage.STATE, Stage.STATE_PARTS}

    @property
    def whole(self) -> bool:
        """Whether the staged rows replace everything."""
        return self is Stage.CONTENT or self.makes_state


@dataclass(frozen=True, slots=True)
class Target:
    """A table of a stream table's rows, and the statements that apply the staged changes to it.

    `layout` is a query with the columns of the changes, `count_deleted` counts the rows that they delete,
    and `indexes` are created once the table holds its first rows, as is `key_index`, which may be left out. `apply_few`
    takes the changes as parameters instead. Without an index by which rows are `found_by_index`, as many are compared
    with the changes as the table has.
    """

    name: str
    table: str
    layout: str
    count_deleted: str
    delete: str
    insert: str
    apply_few: str
    key_index: str | None
    indexes: tuple[str, ...]
    found_by_index: bool


@dataclass(frozen=True, slots=True)
class Replacement:
    """Statements that stage what turns the stored rows into others: what differs, or all where nothing is stored.

    `insert_all` inserts all instead; without it the staged rows are just what is to be inserted.
    """

    stage_differences: str
    stage_all: str
    insert_all: str | None


@dataclass(frozen=True, slots=True)
class FewGroups:
    """Statements that take few increments, and the values of groups computed anew, as parameters.

    `columns` are those of the state, in the order in which the parameters have them. `merge` returns the numbers of
    negative and of empty groups, which `delete_empty` deletes, and the changes of the stream table.
    """

    columns: tuple[str, ...]
    merge: str
    delete_empty: str | None


@dataclass(frozen=True, slots=True)
class KeptTable:
    """The table of groups within a query: `layout` is a query with its `columns`, `indexes` are made once it is filled.

    `take_in` adds increments, its parameter `rows`, and returns in how many groups the number of rows became negative.
    """

    name: str
    columns: tuple[str, ...]
    layout: str
    take_in: str
    indexes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NewState:
    """How an aggregate state is created with the columns of the query `layout`, and filled from staged increments.

    `index` is created last; `delete_empty` is None for the one group that is there even without rows.
    """

    layout: str
    fill: str
    count_negative: str
    delete_empty: str | None
    index: str | None


@dataclass(frozen=True, slots=True)
class StatePlan:
    """The aggregate state: how it is created, how staged increments are merged into it, and what groups then show.

    `touched` is a query for the rows of the touched groups. `take_recomputed` writes the values of groups that were
    computed anew, if any are; `delete_empty` is None for the one group that is there even without rows. Where the stage
    needs them, `new` says how the state is created, and `input_layout` is a query for the columns of the rows below.
    """

    table: str
    insert_new: str
    merge: str
    take_recomputed: str | None
    count_negative: str
    delete_empty: str | None
    touched: str
    stage_differences: str
    few: FewGroups
    new: NewState | None = None
    input_layout: str = ""
    fill_increments: str = ""


@dataclass(frozen=True, slots=True)
class Body:
    """The hidden table that is maintained in place of the stream table, which shows a part of it.

    `index` is created once it holds its first rows, and may be left out. `stage_shown` stages the difference between
    the first rows, which LIMIT shows, and those shown so far; `shown_few` returns it as two arrays, of the rows and of
    their weights.
    """

    table: str
    layout: str
    index: str | None
    stage_shown: str | None = None
    shown_few: str | None = None


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """Output mode append: statements with the parameters `before`, `through` and `since`.

    Windows to `before` were closed earlier, those to `through` are now; those to `since` were emitted by an earlier
    query of the stream table.

    - `withhold` take what is late out of staged changes, and record it.
    - `record_missed` records how closed windows differ from what was computed anew, `record_missed_since` does so for
      those after `since`, and `forget_closed` takes closed windows out of what was computed.
    - `close` moves rows to the stream table, `close_state` drops their state, which `state_index` finds.
    """

    withhold: tuple[str, ...]
    record_missed: str
    record_missed_since: str
    forget_closed: str
    close: str
    close_state: str | None
    state_index: str | None


@dataclass(frozen=True, slots=True)
class ApplyPlan:
    """What the write transaction does with the staged rows of one refresh.

    `target` is the table that the changes are applied to: the stream table, or its body. `names` maps staged
    columns to those of the table of changes; others keep theirs. `weight` is the staged column of weights.
    `withhold_frozen` takes changes of frozen rows out of the staged ones, and records them; its parameter is
    `frozen_before`. `discard` names the tables to drop that a refresh of the whole does not maintain.
    """

    stage: Stage
    target: Target
    shown: Target
    weight: str
    names: tuple[tuple[str, str], ...] = ()
    content_layout: str = ""
    replacement: Replacement | None = None
    state: StatePlan | None = None
    body: Body | None = None
    windows: WindowPlan | None = None
    withhold_frozen: str | None = None
    discard: str | None = None

    @property
    def may_insert_all(self) -> bool:
        """Whether all rows that are computed are to be stored, if none are yet."""
        return self.replacement is not None and self.windows is None and self.withhold_frozen is None
