"""What a write transaction reads and stores in the catalog row of its stream table."""

from typing import Any

from sqlalchemy import BindParameter, Integer, Text, and_, bindparam, case, cast, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import JSONB

from pytrickle.catalog.column_types import TIMESTAMP
from pytrickle.catalog.tables import stream_tables
from pytrickle.database.statement import statement

ROW = stream_tables.c
LET_THROUGH: BindParameter[Any] = bindparam("let_through", type_=JSONB)
CLOSED = statement(
    select(ROW.effective_watermark, ROW.earlier_query_through)
    .where(ROW.pgt_id == bindparam("pgt_id"))
    .with_for_update()
)
# What every refresh writes into the row of its stream table, whether there are new rows or not.
UP_TO_DATE = (
    update(stream_tables)
    .where(ROW.pgt_id == bindparam("pgt_id"), ROW.frontier_version == bindparam("frontier_version"))
    .values(
        data_timestamp=bindparam("moment"),
        last_refresh_at=bindparam("moment"),
        effective_watermark=func.greatest(ROW.effective_watermark, bindparam("watermark")),
        frozen_before=case(
            (
                ROW.frozen_after.is_not(None),
                func.greatest(
                    ROW.frozen_before,
                    func.pgtrickle_private.frozen_limit(
                        func.greatest(ROW.effective_watermark, bindparam("watermark")), ROW.frozen_after
                    ),
                ),
            ),
        ),
        effective_batch=func.greatest(ROW.effective_batch, bindparam("batch")),
        let_through=case(
            (literal_column("'{}'", JSONB) == LET_THROUGH, ROW.let_through),
            else_=func.pgtrickle_private.farthest(ROW.let_through, LET_THROUGH),
        ),
        status="ACTIVE",
        last_skip_reason=None,
        last_error=None,
        last_error_at=None,
        last_sqlstate=None,
        gated_since=None,
        consecutive_failures=0,
        retry_at=None,
    )
)
SAME_QUERY = ROW.view_stamp.is_not_distinct_from(bindparam("view_stamp"))
# Without new rows. What was asked for, or found to be missing, since the snapshot may concern windows and rows that the
# watermark would close and freeze.
MARK = statement(UP_TO_DATE.where(SAME_QUERY, ROW.reinitialize_reason.is_(None)))
ADVANCE = statement(
    UP_TO_DATE.where(
        SAME_QUERY,
        # Rows are written by its name, which another table may have by now.
        ROW.pgt_relid == func.to_regclass(cast(bindparam("written_as"), Text)),
        ROW.frozen_by.is_not_distinct_from(bindparam("frozen_by")),
        ROW.frozen_before.is_not_distinct_from(cast(bindparam("frozen_before", type_=Text), TIMESTAMP)),
    )
    .values(
        frontier_version=ROW.frontier_version + 1,
        refresh_xid=func.pg_current_xact_id(),
        # A reason that came while the rows were computed concerns the next refresh.
        reinitialize_reason=case(
            (ROW.reinitialize_reason.is_not_distinct_from(bindparam("known_reason")), bindparam("next_reason")),
            else_=ROW.reinitialize_reason,
        ),
        recomputation_asked=and_(
            ROW.recomputation_asked, ROW.reinitialize_reason.is_distinct_from(bindparam("known_reason"))
        ),
        planner_defect=bindparam("planner_defect"),
        fuse_blown_at=None,
        frontier=bindparam("frontier", type_=JSONB),
        effective_refresh_mode=bindparam("mode"),
        refresh_reason=bindparam("reason"),
        kept_groups=bindparam("kept_groups"),
        last_fixpoint_iterations=func.coalesce(bindparam("rounds", type_=Integer), ROW.last_fixpoint_iterations),
    )
    .returning(
        cast(ROW.refresh_xid, Text),
        ROW.effective_watermark,
        func.pgtrickle_private.rewritten_source(ROW.pgt_id, False),
    )
)
