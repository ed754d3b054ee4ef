"""What a write transaction is told to store beside the rows, and what came of it."""

from dataclasses import dataclass
from datetime import datetime

from pytrickle.apply.measures import Measures
from pytrickle.cut import Cut
from pytrickle.progress import Progress


@dataclass(frozen=True, slots=True)
class Commitment:
    """What the write transaction stores beside the rows; `since` is the reading of the monotonic clock at the start.

    `let_through` is that of the gating decision, `measures` are taken until the rows are written. `known_reason` is why
    this refresh computes the whole table again, `next_reason` why the next one must. With `window_end`, rows are shown
    once the window that this column ends is closed; rows whose `frozen_by` is before `frozen_before` are left alone.
    `planner_defect` names what planning failed on.
    """

    pgt_id: int
    frontier_version: int
    view_stamp: str | None
    settings: tuple[str, ...]
    snapshot: Cut
    data_timestamp: datetime
    effective: Progress
    let_through: str
    initiated_by: str
    since: float
    measures: Measures
    known_reason: str | None = None
    next_reason: str | None = None
    window_end: str | None = None
    frozen_by: str | None = None
    frozen_before: str | None = None
    planner_defect: str | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """What a committed refresh changed, and the transaction that did it."""

    rows_inserted: int
    rows_deleted: int
    xid: str
