"""Refreshing a cycle of stream tables: rounds until none of them gains a row, then one refresh of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import monotonic

from pytrickle.apply.commit import commit
from pytrickle.apply.commitment import Committed
from pytrickle.apply.measures import COMPUTE, WAIT, Measures
from pytrickle.catalog.definition import ChangeRange
from pytrickle.catalog.session_settings import limit_statements, session_statements
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.compute.postgres import read_directly
from pytrickle.cut import Cut
from pytrickle.database import Snapshot, settle
from pytrickle.errors import FixpointNotReached, StreamTableDrifted
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.cycle.growth import growth, standing_in
from pytrickle.plan.limits import IN_ROUNDS, Means
from pytrickle.plan.placement import PLANNER
from pytrickle.plan.refresh_plan import RefreshPlan
from pytrickle.refresh.cycle.gains import Grown
from pytrickle.refresh.cycle.rules import Member, plan_member, refuse, why_anew
from pytrickle.refresh.guards import refuse_recomputing
from pytrickle.refresh.member import Done, GoalOf, MemberFailed, blamed_on
from pytrickle.refresh.refresher import Refresher
from pytrickle.refresh.values import Computation, Goal


@dataclass(slots=True)
class Turn:
    """A member in the rounds: `shape` reads the members' gains, of which the steps up to `seen` have been taken in."""

    member: Member
    goal: Goal
    shape: Analysis
    grown: Grown
    seen: dict[int, int]
    gains: dict[int, int] = field(default_factory=dict)
    begun: bool = False

    @property
    def table(self) -> StreamTable:
        """The stream table."""
        return self.member.table

    @property
    def gained(self) -> int:
        """How many rows it gained so far."""
        return sum(self.gains.values())

    def since(self, step: int) -> int:
        """Return how many rows it gained after a step."""
        return sum(rows for at, rows in self.gains.items() if at > step)


@dataclass(slots=True)
class Fixpoint:
    """One refresh of a cycle within a transaction that stands at the snapshot; `own` is what it wrote already.

    What the members hold at the end is the least fixed point of their queries: from nothing, or from the least fixed
    point before where all queries only gained rows, each query is evaluated over what the others have come to, and all
    that a step adds belongs to every fixed point. In the rounds only gains are joined, so that a row is derived once
    for each way in which it can be (semi-naive evaluation: Balbin and Ramamohanarao, 1987).
    """

    refresher: Refresher
    inside: Snapshot
    goal_of: GoalOf
    own: Mapping[int, str]
    xid: str = ""
    step: int = 0
    anew: str | None = None
    turns: dict[int, Turn] = field(default_factory=dict)
    started: float = field(default_factory=monotonic)

    def refresh(self, tables: tuple[StreamTable, ...]) -> dict[int, Done]:
        """Refresh all members or, where nothing changed, none of them; raise MemberFailed."""
        # Every fuse must be looked at, also after a member that changed.
        changed = [self._changed(table) for table in tables]
        if not any(changed):
            return {
                table.relid: (self.refresher.mark_up_to_date(table, self.goal_of(table, self.own)), None)
                for table in tables
            }
        members = self._members(tables)
        with blamed_on(tables[0]):
            self.anew = why_anew(self.inside.connection, members)
            self._refuse_recomputing(members)
            self._set_out(members)
        rounds = self._go_round(min(table.max_fixpoint_iterations for table in tables))
        return self._finish(rounds)

    def _changed(self, table: StreamTable) -> bool:
        with blamed_on(table):
            return self.refresher.changed(self.inside, table, self.goal_of(table, self.own)) is not None

    def _members(self, tables: tuple[StreamTable, ...]) -> list[Member]:
        row = self.inside.connection.execute("SELECT pg_current_xact_id()::text").fetchone()
        self.xid = str(row[0]) if row else ""
        self.own = {**self.own, **dict.fromkeys((table.relid for table in tables), self.xid)}
        planner, members = self.refresher.planner, []
        for table in tables:
            with blamed_on(table):
                ranges = planner.ranges(self.inside, table, self.goal_of(table, self.own).targets)
                members.append(Member(table, planner.shape(self.inside.connection, table.pgt_id), ranges))
        with blamed_on(tables[0]):
            refuse(members)
        return members

    def _refuse_recomputing(self, members: list[Member]) -> None:
        for member in members:
            if self.anew:
                refuse_recomputing(member.table, Action.REINITIALIZE, self.anew)

    def _set_out(self, members: list[Member]) -> None:
        connection = self.inside.connection
        settle(connection, PLANNER)
        relids = {member.table.relid for member in members}
        sources = {s.relid: s for member in members for s in member.shape.definition.sources if s.relid in relids}
        grown = {
            m.table.relid: Grown.create(connection, m.shape, sources[m.table.relid].indexed, not self.anew)
            for m in members
        }
        stand_ins = {relid: grown[relid].standing_in_for(source) for relid, source in sources.items()}
        for m in members:
            goal, shape = self.goal_of(m.table, self.own), standing_in(m.shape, stand_ins)
            read = [relid for relid in m.ranges if relid in relids]
            self.turns[m.table.relid] = Turn(m, goal, shape, grown[m.table.relid], dict.fromkeys(read, 0))

    def _go_round(self, limit: int) -> int:
        """Give every member its turn until none has anything to take in; return how many rounds that were."""
        for rounds in range(1, limit + 1):
            for turn in self.turns.values():
                with blamed_on(turn.table):
                    self._take_in(turn)
            if not any(self._unseen(turn) for turn in self.turns.values()):
                return rounds
        tables = [turn.table for turn in self.turns.values()]
        names = ", ".join(table.name for table in tables)
        raise MemberFailed(
            tables[0], FixpointNotReached(f"The cycle of {names} has no fixed point after {limit} rounds.")
        )

    def _unseen(self, turn: Turn) -> int:
        return sum(self.turns[relid].since(step) for relid, step in turn.seen.items())

    def _take_in(self, turn: Turn) -> None:
        """Evaluate one query over what came since its last turn."""
        ranges = self._ranges(turn)
        if (turn.begun or not self.anew) and not any(change_range.delta_rows for change_range in ranges.values()):
            return
        connection = self.inside.connection
        settle(connection, session_statements(turn.table) + limit_statements(turn.table))
        gained = growth(turn.shape, ranges, bool(self.anew) and not turn.begun)
        turn.begun, turn.seen = True, dict.fromkeys(turn.seen, self.step)
        self.step += 1
        turn.gains[self.step] = turn.grown.add(connection, gained, self.xid, self.step)

    def _ranges(self, turn: Turn) -> dict[int, ChangeRange]:
        """Return the ranges of one step: of the sources outside of the cycle, all changes come with the first."""
        ranges = dict(turn.member.ranges)
        if turn.begun:
            ranges = {relid: ChangeRange(relid, w.new, w.new, 0, w.future_rows) for relid, w in ranges.items()}
        return ranges | {relid: self._gains(relid, step) for relid, step in turn.seen.items()}

    def _gains(self, relid: int, step: int) -> ChangeRange:
        cut = Cut(self.inside.cut.snapshot, self.xid, step, None)
        return ChangeRange(relid, cut, None, self.turns[relid].since(step))

    def _finish(self, rounds: int) -> dict[int, Done]:
        """Refresh each member once over the fixed point; all are computed before the first is written."""
        computations = {relid: self._computation(turn, rounds) for relid, turn in self.turns.items()}
        try:
            for computation in computations.values():
                if computation.plan is not None:
                    with blamed_on(computation.table):
                        computation.measures.enter(COMPUTE)
                        computation.staged = read_directly(
                            self.inside.connection, computation.plan, computation.settings
                        )
                        computation.measures.enter(WAIT)
            return {relid: self._write(self.turns[relid], each) for relid, each in computations.items()}
        finally:
            for computation in computations.values():
                computation.close()

    def _computation(self, turn: Turn, rounds: int) -> Computation:
        with blamed_on(turn.table):
            return Computation(turn.table, turn.goal, self._plan(turn, rounds), measures=Measures(self.started))

    def _plan(self, turn: Turn, rounds: int) -> RefreshPlan | None:
        """Plan the refresh over the fixed point; its frontiers are those of the stream table's own sources."""
        table, stored = turn.table, turn.member.ranges
        ranges = stored | {relid: self._gains(relid, 0) for relid in turn.seen}
        taken_in = {
            relid: replace(stored[relid], delta_rows=change_range.delta_rows) for relid, change_range in ranges.items()
        }
        delta_rows = sum(change_range.delta_rows for change_range in taken_in.values())
        if not (self.anew or delta_rows):
            return None
        plan = plan_member(turn.member, turn.shape, ranges, self.anew)
        reason = table.decision.explained(f"{plan.reason}, a fixed point after {rounds} round{'s' * (rounds > 1)}")
        plan = replace(plan.because(reason), ranges=tuple(taken_in.values()), rounds=rounds)
        wanted = self.refresher.planner.limits(table, Means.ALL).spark
        return plan.alone(IN_ROUNDS) if wanted else plan

    def _write(self, turn: Turn, computation: Computation) -> Done:
        connection = self.inside.connection
        with blamed_on(turn.table):
            turn.grown.drop(connection)
            if computation.plan is None or computation.staged is None:
                return self.refresher.mark_up_to_date(turn.table, turn.goal), None
            what = computation.commitment(self.inside.cut)
            committed = commit(connection, computation.plan, computation.staged, what)
            self._check(turn, committed)
            return self.refresher.result(computation, committed), committed

    def _check(self, turn: Turn, committed: Committed) -> None:
        """At a fixed point a query yields what its stream table has come to in the rounds, neither more nor less."""
        stored = committed.rows_inserted if not self.anew else turn.grown.stored_rows(self.inside.connection)
        if stored != turn.gained or (committed.rows_deleted and not self.anew):
            raise StreamTableDrifted(f"{turn.table.name} does not hold what the rounds of its cycle ended with.")
