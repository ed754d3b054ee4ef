"""What looks at stream tables, or at queries that could become some, and changes nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import overload

from pytrickle.catalog import stream_table as catalog
from pytrickle.catalog.reports import StreamTableStatus
from pytrickle.config import Settings
from pytrickle.database import impatient, translate_errors
from pytrickle.defects import defects_named
from pytrickle.errors import InvalidArgument
from pytrickle.inspect.as_of import AsOf
from pytrickle.inspect.as_of import as_of as read_as_of
from pytrickle.inspect.explain import Explanation, explain
from pytrickle.inspect.preview import preview
from pytrickle.inspect.verify import VerifyResult, verify, verify_each
from pytrickle.refresh.refresher import Refresher


class Inspection(ABC):
    """The part of a client that explains, compares, and reads the past."""

    settings: Settings

    @abstractmethod
    def _refreshing(self) -> Refresher:
        """Return the refresher on a living connection."""

    @abstractmethod
    def stream_tables(self) -> tuple[StreamTableStatus, ...]:
        """Return the status of every stream table."""

    @overload
    def explain(self, name: str) -> Explanation: ...
    @overload
    def explain(self, *, query: str) -> Explanation: ...

    def explain(self, name: str | None = None, *, query: str | None = None) -> Explanation:
        """Explain what the next refresh of a stream table would do, and where each part would run.

        With a `query` instead of a name, explain the stream table that would be created from it, and create nothing;
        raise what create_stream_table raises for it.
        """
        if query is not None and name is None:
            return preview(self._refreshing().planner, query)
        if name is None or query is not None:
            raise InvalidArgument("Explain either a stream table or a query.", "Give its name, or query=….")
        with translate_errors():
            pgt_id = catalog.resolve_name(self._refreshing().connection, name)
        refresher = self._refreshing()
        with defects_named(f"explaining {name}"), impatient(refresher.connection):
            return explain(refresher, pgt_id, self.settings.max_concurrent_refreshes)

    @overload
    def verify(self, name: str) -> VerifyResult: ...
    @overload
    def verify(self, name: None = None) -> tuple[VerifyResult, ...]: ...

    def verify(self, name: str | None = None) -> VerifyResult | tuple[VerifyResult, ...]:
        """Compare a stream table with its defining query at its own frontier; all, one by one, without a name.

        Raises LockTimeout while somebody holds, or waits for, a lock that keeps all others off a source.
        """
        if name is None:
            return verify_each([table.stream_table for table in self.stream_tables()], self.verify)
        with translate_errors():
            pgt_id = catalog.resolve_name(self._refreshing().connection, name)
        connection = self._refreshing().connection
        # Whoever waits for what the snapshot reads, and is waited for by this connection, would wait for ever.
        with impatient(connection):
            return verify(self.settings.dsn, connection, pgt_id)

    def as_of(self, name: str, watermark: datetime | int, *, written: bool = False) -> AsOf:
        """Return the rows that the query of a stream table gave as of an earlier watermark.

        With `written`, values of which Python has not all, such as intervals and dates, are as PostgreSQL writes them.
        Raises NotRetained where the change history no longer reaches back that far; `watermark_retention` keeps it.
        Raises LockTimeout as `verify` does.
        """
        with translate_errors():
            pgt_id = catalog.resolve_name(self._refreshing().connection, name)
        connection = self._refreshing().connection
        with impatient(connection):
            return read_as_of(self.settings.dsn, connection, pgt_id, watermark, written=written)
