"""Stream tables that stand still in a tick, as most do: nothing changed that they read, nothing is to be decided."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic

from pytrickle.catalog.stream_table import StreamTable
from pytrickle.refresh.values import RefreshResult, nothing_done
from pytrickle.schedule.units import Unit
from pytrickle.schedule.verdict import Seen, is_still


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a stream table reads that must not have changed: the `buffers` of all, and which stream tables are above it.

    `result` is what is told of it then.
    """

    buffers: frozenset[str]
    above: frozenset[int]
    result: RefreshResult

    @classmethod
    def of(cls, table: StreamTable) -> "Candidate":
        """Return the candidate for a stream table about which nothing is to be decided."""
        buffers = frozenset(source.buffer for source in table.dependencies if source.buffer)
        above = frozenset(source.relid for source in table.dependencies if source.kind == "STREAM_TABLE")
        return cls(buffers, above, nothing_done(table, monotonic()))


@dataclass(slots=True)
class Standstill:
    """The candidates of a refresher, by the numbers of their stream tables.

    What is worked out for one serves for as long as the catalog says the same of it, thus as it is the same value.
    """

    known: dict[int, tuple[StreamTable, Candidate | None]] = field(default_factory=dict)

    def find(self, units: Iterable[Unit], seen: Seen) -> Mapping[int, RefreshResult]:
        """Return what is told of the stream tables that stand still, by the number of their table.

        The units come sources first: a stream table stands still only if those that it reads are among the units, too,
        and do.
        """
        still: dict[int, RefreshResult] = {}
        alone = [unit.tables[0] for unit in units if len(unit.tables) == 1 and not unit.cycles]
        self.known = {table.pgt_id: self._candidate(table) for table in alone}
        for table in alone:
            _, candidate = self.known[table.pgt_id]
            if (
                candidate is not None
                and seen.empty.issuperset(candidate.buffers)
                and still.keys() >= candidate.above
                and table.pgt_id not in seen.broken
            ):
                still[table.relid] = candidate.result
        return still

    def _candidate(self, table: StreamTable) -> tuple[StreamTable, Candidate | None]:
        known = self.known.get(table.pgt_id)
        if known is not None and known[0] is table:
            return known
        return table, Candidate.of(table) if is_still(table) else None
