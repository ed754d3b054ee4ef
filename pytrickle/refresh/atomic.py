"""Refreshing several stream tables in one transaction, all at the same cut: all of them, or none."""

from dataclasses import dataclass, field, replace

from psycopg import sql

from pytrickle.apply.commit import commit
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.database import Snapshot, filled, translate_errors
from pytrickle.refresh.cycle.fixpoint import Fixpoint
from pytrickle.refresh.keeping import Keeper
from pytrickle.refresh.member import Done, GoalOf, blamed_on
from pytrickle.refresh.refresher import Refresher
from pytrickle.refresh.values import Computation, attempting


@dataclass(slots=True)
class AtomicRefresh:
    """One atomic refresh of stream tables; `goal_of` says how far to read one, given what this transaction wrote.

    What reads no other member is computed in the snapshot before the transaction begins, by Spark where that pays.
    What does is computed within the transaction, which stands at the same snapshot and sees its own writes. The members
    of each of the `cycles` are refreshed in rounds.
    """

    refresher: Refresher
    snapshot: Snapshot
    goal_of: GoalOf
    cycles: tuple[frozenset[int], ...] = ()
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
                    with blamed_on(table):
                        goal = self.goal_of(table, self.written)
                        self.computed[table.relid] = self.refresher.precompute(self.snapshot, table, goal)
            self._write(tables)
        finally:
            for computation in self.computed.values():
                computation.close()
        for computation in self.computed.values():
            if computation.plan:
                Keeper(self.refresher.connection, self.refresher.planner).keep(computation.table, computation.plan)
        return self.done

    def _write(self, tables: tuple[StreamTable, ...]) -> None:
        connection = self.refresher.connection
        with blamed_on(tables[-1]), connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.execute(filled("SET TRANSACTION SNAPSHOT {name}", name=sql.Literal(self.snapshot.name)))
            inside = replace(self.snapshot, connection=connection)
            for block in in_blocks(tables, self.cycles):
                self._refresh(block, inside)

    def _refresh(self, block: tuple[StreamTable, ...], inside: Snapshot) -> None:
        if any(block[0].relid in cycle for cycle in self.cycles):
            done = Fixpoint(self.refresher, inside, self.goal_of, self.written).refresh(block)
            self.written |= {relid: committed.xid for relid, (_, committed) in done.items() if committed}
            self.done |= done
            return
        for table in block:
            with blamed_on(table):
                self.done[table.relid] = self._apply(table, inside)

    def _apply(self, table: StreamTable, inside: Snapshot) -> Done:
        if table.relid not in self.computed:
            goal = self.goal_of(table, self.written)
            self.computed[table.relid] = self.refresher.precompute(inside, table, goal, inside=True)
        computation = self.computed[table.relid]
        if computation.plan is None or computation.staged is None:
            return self.refresher.mark_up_to_date(table, computation.goal), None
        what = computation.commitment(self.snapshot.cut)
        with attempting(computation.plan), translate_errors():
            committed = commit(inside.connection, computation.plan, computation.staged, what)
        self.written[table.relid] = committed.xid
        return self.refresher.result(computation, committed), committed


def in_blocks(
    tables: tuple[StreamTable, ...], cycles: tuple[frozenset[int], ...]
) -> tuple[tuple[StreamTable, ...], ...]:
    """Put the tables of a cycle into one block, and each other one into a block of its own; the order stays."""
    found: dict[object, list[StreamTable]] = {}
    for table in tables:
        home = next((cycle for cycle in cycles if table.relid in cycle), table.relid)
        found.setdefault(home, []).append(table)
    return tuple(map(tuple, found.values()))
