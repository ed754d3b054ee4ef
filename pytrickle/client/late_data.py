"""What can be done about late data: declare event times, replay or discard what was kept out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from pytrickle.catalog.source_name import SOURCE


class LateData(ABC):
    """The part of a client that is about late data; each method is one transaction."""

    @abstractmethod
    def _call(self, statement: str, *arguments: object) -> Any:
        """Run a call of one function and return what it returns."""

    def set_event_time(
        self,
        source: str,
        column_name: str,
        too_late: timedelta | str | None = None,
        time_zone: str | None = None,
    ) -> None:
        """Declare which column of a source is its event time, so that late rows are noted; replaces what was declared.

        Rows later than `too_late` are kept in the ledger instead of in the source. `time_zone` is for columns of type
        timestamp or date. Waits for running writers. Raises InvalidArgument for a column that is no event time.
        """
        statement = f"SELECT pgtrickle.set_event_time({SOURCE}, %s::pg_catalog.name, %s::interval, %s)"
        self._call(statement, source, column_name, too_late, time_zone)

    def unset_event_time(self, source: str) -> None:
        """Stop noting late rows of a source; those in the ledger stay."""
        self._call(f"SELECT pgtrickle.unset_event_time({SOURCE})", source)

    def replay_late_rows(
        self, source: str, late_ids: Sequence[int] | None = None, *, skip_conflicts: bool = False
    ) -> int:
        """Put rows into a source that were kept out: all, or those given, each once; return how many.

        A row that PostgreSQL refuses fails the call, and nothing is replayed; with `skip_conflicts`, one that is
        there already is passed over.
        """
        given = None if late_ids is None else list(late_ids)
        statement = f"SELECT pgtrickle.replay_late_rows({SOURCE}, %s::bigint[], %s)"
        replayed: int = self._call(statement, source, given, skip_conflicts)
        return replayed

    def discard_late_rows(self, source: str, late_ids: Sequence[int]) -> int:
        """Mark rows that were kept out of a source as not wanted; return how many were marked."""
        statement = f"SELECT pgtrickle.discard_late_rows({SOURCE}, %s::bigint[])"
        discarded: int = self._call(statement, source, list(late_ids))
        return discarded
