"""What a pass did so far, shared by its lanes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from pytrickle.catalog.stream_table import StreamTable
from pytrickle.errors import PytrickleError
from pytrickle.refresh.values import RefreshResult
from pytrickle.schedule.units import Unit
from pytrickle.schedule.verdict import SoFar


@dataclass(slots=True)
class Record:
    """What a pass did so far. Its lanes share it: they write and read it only through the one lock.

    `refreshed` are the tables brought as far as what they read; the other fields are those of SoFar.
    """

    written: dict[int, str] = field(default_factory=dict)
    refreshed: set[int] = field(default_factory=set)
    current: set[int] = field(default_factory=set)
    stalled: dict[int, str] = field(default_factory=dict)
    results: dict[int, RefreshResult] = field(default_factory=dict)
    errors: dict[int, PytrickleError] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def so_far(self, unit: Unit) -> SoFar:
        """Return what was done until now of a unit and of what it reads, as a value that stays as it is."""
        relids = {d.relid for table in unit.tables for d in table.dependencies} | {t.relid for t in unit.tables}
        with self.lock:
            return SoFar(
                {relid: self.written[relid] for relid in relids if relid in self.written},
                frozenset(relids & self.current),
                {relid: self.stalled[relid] for relid in relids if relid in self.stalled},
            )

    def standing(self) -> tuple[frozenset[int], frozenset[int]]:
        """Return which tables reached the cut, and which are as far as what they read."""
        with self.lock:
            return frozenset(self.current), frozenset(self.refreshed)

    def note_done(self, relid: int, xid: str | None, reached: bool) -> None:
        """Note that a table was refreshed, by a transaction if it got new rows, and whether it reached the cut."""
        with self.lock:
            self.refreshed.add(relid)
            if xid:
                self.written[relid] = xid
            if reached:
                self.current.add(relid)

    def note_still(self, results: Mapping[int, RefreshResult]) -> None:
        """Note tables that stand where their sources do, with what is told of them."""
        with self.lock:
            self.refreshed.update(results)
            self.current.update(results)
            self.results.update(results)

    def note_failed(self, table: StreamTable, error: PytrickleError) -> None:
        """Note a failure, which stalls what reads the table."""
        with self.lock:
            self.errors[table.relid] = error
            self.stalled[table.relid] = table.name

    def note_stalled(self, relid: int, culprit: str) -> None:
        """Note that a table was kept back by the failure of another one."""
        with self.lock:
            self.stalled[relid] = culprit

    def has_result(self, relid: int) -> bool:
        """Return whether something is told of a table already."""
        with self.lock:
            return relid in self.results

    def note_result(self, relid: int, result: RefreshResult) -> None:
        """Note what is told of a table."""
        with self.lock:
            self.results[relid] = result
