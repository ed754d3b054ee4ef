"""A whole refresh of little data, read as what differs from the rows that are stored: nothing is staged.

`op(NEW) - stored` is one query, and what it returns is applied as changes are. So a whole refresh of a small table
costs hardly more than its query: no temporary table, no new aggregate state, no content that travels.
"""

from dataclasses import replace

from pytrickle.plan.algebra.query import Top
from pytrickle.plan.apply_plan import Stage
from pytrickle.plan.at_cut import current_query, path_of
from pytrickle.plan.cost import is_little
from pytrickle.plan.placement import PLANNER, SETTINGS, Place, Way, place_whole
from pytrickle.plan.planning import Reads, planned, settings_as_written
from pytrickle.plan.postgres.aggregate import Merge
from pytrickle.plan.postgres.aggregate_state import Grouped
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.few_rows import difference
from pytrickle.plan.postgres.merge_state import state_table
from pytrickle.plan.postgres.scales import first_scales
from pytrickle.plan.postgres.stored_rows import Storage, body_table
from pytrickle.plan.reading import lossy_columns, reading
from pytrickle.plan.refresh_plan import PostgresQuery, RefreshPlan
from pytrickle.plan.task import Task
from pytrickle.plan.whole_rows import whole_rows

NAMED = "SELECT {items} FROM (\n{rows}\n) AS q"
WRITTEN = "SELECT * FROM (\n{query}\n) AS q ({columns})"
STORED = "SELECT {columns} FROM {table}"
# Of a group whose state differs both states are found, of one that has no rows any more only the stored one.
GROUPS = """\
SELECT {items} FROM (
    SELECT n.*, max(n.{weight}) OVER ({partition}) AS pgt_newest FROM (
{changed}
    ) AS n
) AS n WHERE n.{weight} = n.pgt_newest"""


def plan_difference(task: Task, way: Way, refresh_mode: str) -> RefreshPlan | None:
    """Plan a whole refresh as a difference; None where its data are many, or it is computed elsewhere or otherwise."""
    if not is_difference(task, way):
        return None
    placement = place_whole(way, Stage.CHANGES, task.rows_read, task.limits)
    if task.shape.query is None or refresh_mode == "FULL":
        found = _as_written(task)
        return planned(task, placement, Reads(found)) if found else None
    grouped, top = task.shape.grouped, task.query.top
    if grouped is None:
        return planned(task, placement, Reads(_rows(task), top=top))
    if any(column.merge is Merge.RECOMPUTE for column in grouped.state):
        return None
    return planned(task, replace(placement, stage=Stage.GROUPS), Reads(_groups(task, grouped), top=top))


def is_difference(task: Task, way: Way) -> bool:
    """Whether a whole refresh may be one: PostgreSQL reads everything as it is now, and that is little."""
    return _is_small(task, way) and place_whole(way, Stage.CHANGES, task.rows_read, task.limits).direct


def _is_small(task: Task, way: Way) -> bool:
    """Whether everything is read as it is now, and little is read or kept. Of a table never analyzed nobody knows.

    Rows that are told apart by their text take longer than rows that are copied: worth it while there are not many.
    """
    shape, elsewhere = task.shape, bool(task.applied or task.window_end or task.frozen_by)
    rewound = any(change_range.new and change_range.future_rows for change_range in task.ranges.values())
    return bool(shape.definition.columns) and not (elsewhere or rewound) and is_little(task.rows_read, way.kept_rows)


def _as_written(task: Task) -> PostgresQuery | None:
    """Read the query as it is written; what surrounds it must not be found by a creator's path."""
    query = current_query(task.shape.definition)
    if path_of(task.shape.definition, query):
        return None
    storage = _storage(task)
    # Columns of the stream table may have been renamed since.
    after = WRITTEN.format(query=query, columns=storage.column_list())
    return _reading(task, _changes(after, storage, "1"), storage, settings_as_written(task.shape))


def _rows(task: Task) -> PostgresQuery:
    whole = whole_rows(task)
    storage = _storage(task, task.query.top)
    named = zip(task.query.row_columns, storage.columns, strict=True)
    items = ", ".join([*(f"q.{name} AS {column}" for name, column in named), WEIGHT])
    after = NAMED.format(items=items, rows=whole.rows)
    query = _changes(after, storage, WEIGHT)
    return _reading(task, whole.compiler.within(query), storage, PLANNER + SETTINGS[Place.POSTGRES])


def _changes(after: str, storage: Storage, sign: str) -> str:
    """Write what turns the stored rows into others, whose weight is `sign`, under the names of staged columns."""
    before = STORED.format(columns=storage.column_list(), table=storage.table)
    items = [*(f"q.{column} AS r{i}" for i, column in enumerate(storage.columns)), WEIGHT]
    return NAMED.format(items=", ".join(items), rows=difference(after, before, storage.columns, sign))


def _reading(task: Task, query: str, storage: Storage, settings: tuple[str, ...]) -> PostgresQuery:
    staged = tuple(f"r{i}" for i in range(len(storage.columns)))
    return reading(query, staged, lossy_columns(task.shape), settings, True)


def _groups(task: Task, grouped: Grouped) -> PostgresQuery:
    """Read the new state of the groups whose state differs; of those that are gone, that they have no rows."""
    whole = whole_rows(task)
    normal = (
        f"{first_scales(f'q.{column.name}')} AS {column.name}" if column.merge is Merge.SCALES else f"q.{column.name}"
        for column in grouped.state
    )
    items = ", ".join([*(f"q.{key}" for key in grouped.keys), *normal])
    after = NAMED.format(items=items, rows=grouped.increments(whole.rows, whole.plain))
    before = STORED.format(columns=", ".join(grouped.columns), table=state_table(task.shape.definition.pgt_id))
    query = GROUPS.format(
        items=", ".join(map(_shown, grouped.columns)),
        weight=WEIGHT,
        partition=f"PARTITION BY {', '.join(f'n.{key}' for key in grouped.keys)}" if grouped.keys else "",
        changed=difference(after, before, grouped.columns),
    )
    settings = PLANNER + SETTINGS[Place.POSTGRES]
    return reading(whole.compiler.within(query), grouped.columns, lossy_columns(task.shape), settings)


def _shown(column: str) -> str:
    return f"CASE WHEN n.{WEIGHT} > 0 THEN n.pgt_rows ELSE 0 END AS pgt_rows" if column == "pgt_rows" else f"n.{column}"


def _storage(task: Task, top: Top | None = None) -> Storage:
    """Describe the table to bring up to date: the stream table, or the hidden one of which LIMIT shows a part."""
    shape, pgt_id = task.shape, task.shape.definition.pgt_id
    return Storage.of(shape.body if top else shape.definition, shape.hashed, body_table(pgt_id) if top else None)
