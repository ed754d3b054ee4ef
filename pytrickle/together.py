"""Refreshing several stream tables in one transaction, all at the same cut: all of them, or none."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from psycopg import sql

from pytrickle.apply.commit import Committed, commit, forget_staged
from pytrickle.catalog.refresh import StreamTable
from pytrickle.computation import Computation, Goal, RefreshResult
from pytrickle.db import Snapshot, translate_errors
from pytrickle.errors import PytrickleError
from pytrickle.refresh import Refresher

Done = tuple[RefreshResult, Committed | None]
GoalOf = Callable[[StreamTable, Mapping[int, str]], Goal]


class MemberFailed(Exception):
    """One member of a unit could not be refreshed, so none was."""

    def __init__(self, table: StreamTable, error: PytrickleError) -> None:
        super().__init__(str(error))
        self.table = table
        self.error = error


@dataclass(slots=True)
class Together:
    """One atomic refresh of stream tables; `goal_of` says how far to read one, given what this transaction wrote.

    What reads no other member is computed in the snapshot before the transaction begins, by Spark where that pays.
    What does is computed within the transaction, which stands at the same snapshot and sees its own writes.
    """

    refresher: Refresher
    snapshot: Snapshot
    goal_of: GoalOf
    computed: dict[int, Computation] = field(default_factory=dict)
    written: dict[int, str] = field(default_factory=dict)
    done: dict[int, Done] = field(default_factory=dict)

    def refresh(self, tables: tuple[StreamTable, ...]) -> dict[int, Done]:
        """Refresh tables in the order in which they read each other; return what was done by relid.

        Raise MemberFailed after everything was undone.
        """
        members = {table.relid for table in tables}
        try:
            for table in tables:
                if members.isdisjoint(dependency.relid for dependency in table.dependencies):
                    with _blamed_on(table):
                        goal = self.goal_of(table, self.written)
                        self.computed[table.relid] = self.refresher.compute(self.snapshot, table, goal)
            self._write(tables)
        finally:
            for computation in self.computed.values():
                computation.close()
        return self.done

    def _write(self, tables: tuple[StreamTable, ...]) -> None:
        connection = self.refresher.connection
        with _blamed_on(tables[-1]), connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(self.snapshot.name)))
            inside = replace(self.snapshot, connection=connection)
            for table in tables:
                with _blamed_on(table):
                    self.done[table.relid] = self._apply(table, inside)

    def _apply(self, table: StreamTable, inside: Snapshot) -> Done:
        if table.relid not in self.computed:
            goal = self.goal_of(table, self.written)
            self.computed[table.relid] = self.refresher.compute(inside, table, goal, inside=True)
        computation = self.computed[table.relid]
        if computation.plan is None or computation.staged is None:
            return self.refresher.settle(table, computation.goal), None
        what = self.refresher.commitment(computation, self.snapshot)
        committed = commit(inside.connection, computation.plan, computation.staged, what)
        forget_staged(inside.connection)
        self.written[table.relid] = committed.xid
        return self.refresher.result(computation, committed), committed


@contextmanager
def _blamed_on(table: StreamTable) -> Iterator[None]:
    try:
        with translate_errors():
            yield
    except PytrickleError as error:
        raise MemberFailed(table, error) from error
