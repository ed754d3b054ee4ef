"""Filling the tables of the groups that a query keeps: beside the refreshes, as of the frontier that one has left."""

from contextlib import ExitStack
from dataclasses import dataclass
from logging import getLogger

import psycopg

from pytrickle.apply.commit import READ, REPEATABLE, conflicts, transaction
from pytrickle.apply.kept_groups import fill, mark_filled
from pytrickle.apply.statements import drop
from pytrickle.catalog import change_ranges
from pytrickle.catalog.definition_stamp import definition_stamp
from pytrickle.catalog.session_settings import limit_statements, session_statements
from pytrickle.catalog.stream_table import StreamTable, stream_table
from pytrickle.compute.postgres import READ_ONLY, copied, reset
from pytrickle.database import settle, translate_errors
from pytrickle.errors import PytrickleError
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.kept_reads import filling
from pytrickle.plan.postgres.kept_groups import MOST_KEPT, kept_table
from pytrickle.plan.refresh_plan import RefreshPlan
from pytrickle.refresh.planner import Planner
from pytrickle.refresh.standing import are_kept


@dataclass(frozen=True, slots=True)
class Keeper:
    """Fills the tables of one process's stream tables."""

    connection: psycopg.Connection
    planner: Planner

    def keep(self, table: StreamTable, plan: RefreshPlan) -> None:
        """Fill the tables of a stream table that was refreshed by a plan, where it left them behind.

        What keeps this from being done is no failure of the refresh, which is committed.
        """
        if not self._is_due(table, plan):
            return
        past, pgt_id = self.planner.past, table.pgt_id
        past.left_behind[pgt_id] = 0
        past.untaken[pgt_id] += 1
        try:
            with translate_errors():
                self._fill(pgt_id, plan.shape, limit_statements(table))
        except (PytrickleError, OSError) as error:
            getLogger(__name__).info("The groups within %s are not kept: %s", table.name, error)

    def _is_due(self, table: StreamTable, plan: RefreshPlan) -> bool:
        if plan.kept_as is not None or not self.planner.may_keep(table, plan.shape):
            return False
        past, pgt_id = self.planner.past, table.pgt_id
        whole = plan.action is Action.FULL and plan.delta_rows > 0
        return past.left_behind[pgt_id] >= past.enough_left(pgt_id, whole)

    @conflicts()
    def _fill(self, pgt_id: int, shape: Analysis, limits: tuple[str, ...]) -> None:
        connection = self.connection
        begin = (REPEATABLE, "SAVEPOINT pgt_reading", READ_ONLY)
        with ExitStack() as at_the_end, transaction(connection, begin):
            now = stream_table(connection, pgt_id)
            settle(connection, (*session_statements(now), *limits))
            known = self.planner.unchanged_shape(pgt_id, definition_stamp(connection, pgt_id))
            if known is not shape or not now.follows_its_buffers or shape.kept_as is None or are_kept(now):
                return
            ranges = change_ranges.ranges(connection, now, {})
            read = [filling(shape, ranges, each) for each in shape.kept]
            settle(connection, read[0].read.settings)
            rows = [at_the_end.enter_context(copied(connection, each.read)) for each in read]
            settle(connection, (READ, *reset(read[0].read.settings)))
            if mark_filled(connection, pgt_id, now.frontier_version, now.view_stamp, shape.kept_as):
                for each, found in zip(read, rows, strict=True):
                    fill(connection, each.table, found)
                # An earlier version of the query, or of its statistics, may have had more.
                for number in range(len(read), MOST_KEPT):
                    drop(connection, kept_table(pgt_id, number))
                self.planner.past.filled(pgt_id)
