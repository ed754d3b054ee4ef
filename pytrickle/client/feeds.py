"""Following the changes of a source or stream table, from one watermark to another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pytrickle.catalog.source_name import SOURCE
from pytrickle.config import Settings

if TYPE_CHECKING:
    import pyarrow as pa

_DEFAULT_AGE = timedelta(days=7)
_DEFAULT_ROWS = 10_000_000


class Feeds(ABC):
    """The part of a client that is about feeds; each method is one transaction."""

    settings: Settings

    @abstractmethod
    def _call(self, statement: str, *arguments: object) -> Any:
        """Run a call of one function and return what it returns."""

    def create_feed(
        self,
        name: str,
        relation: str,
        *,
        max_age: timedelta | None = _DEFAULT_AGE,
        max_rows: int | None = _DEFAULT_ROWS,
    ) -> None:
        """Keep the changes of a source or stream table for a reader that follows them.

        It is cut off once a version waits longer than `max_age` to be read, or more changes than `max_rows` do.
        """
        statement = (
            f"SELECT pgtrickle.create_feed(name => %s, relation => {SOURCE},"
            " max_age => %s::pg_catalog.interval, max_rows => %s)"
        )
        self._call(statement, name, relation, max_age, max_rows)

    def drop_feed(self, name: str) -> None:
        """Forget a feed, and end the capture that nobody else needs."""
        self._call("SELECT pgtrickle.drop_feed(name => %s)", name)

    def advance_feed(self, name: str, version: int) -> None:
        """Say that the reader of a feed has all through this version, and needs its changes no more."""
        self._call("SELECT pgtrickle.advance_feed(name => %s, version => %s)", name, version)

    def changes(
        self,
        name: str,
        since: datetime | int,
        until: datetime | int | None = None,
        *,
        net: bool = False,
        updates: bool = False,
    ) -> pa.Table:
        """Return, as Arrow, what leads a source or stream table from one watermark to another, or to its newest.

        Before its columns stand `_change_type` (insert, delete), `_commit_version` and `_commit_timestamp`. `net`
        leaves what the changes come to in the end; `updates` also tells update_preimage and update_postimage, by the
        key. A watermark is an event time or the number of a batch. Raises NotRetained where the changes are no longer
        kept, or no feed keeps them, and NotFresh where the relation is not complete that far.
        """
        from pytrickle.streaming.source.changes import read_changes

        return read_changes(self.settings.dsn, name, since, until, {"net": net, "updates": updates})
