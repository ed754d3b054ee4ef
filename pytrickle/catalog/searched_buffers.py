"""Change buffers of many pages: they are vacuumed once they were read, and indexed if few changes are found in them."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg

from pytrickle.catalog.definition import ChangeRange
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.database import filled, translate_errors

# A buffer of fewer pages is read whole in less time than anything else of a refresh takes.
FEW_PAGES = 64
# A page holds about sixty changes. Where a reader finds fewer than so many in each, most of what it reads are rows that
# were deleted, or that wait for another reader.
WORTH_VACUUMING = 15
# Where it finds fewer than so many, in a buffer that has so many pages even then, an index pays.
WORTH_INDEXING, LEAST_INDEXED = 4, 256
# VACUUM gives back the empty end of a table, and where somebody always writes to it would wait for that for longer.
PATIENCE = "SET statement_timeout = '1s'"

UNINDEXED = "SELECT pgtrickle_private.unindexed_buffers(%s)"
INDEX = "SELECT pgtrickle_private.index_change_buffer(%(buffer)s, %(pages)s)"


@dataclass(frozen=True, slots=True)
class Found:
    """The least number of changes that a reader found in a buffer, and of how many pages that was."""

    rows: int
    pages: int

    @property
    def little(self) -> bool:
        """Whether most of what was read is not what was looked for."""
        return self.rows < WORTH_VACUUMING * self.pages


@dataclass(slots=True)
class SearchedBuffers:
    """Remembers what was found in buffers of many pages since they were tidied.

    A buffer without an index is read whole, so that few changes must not lie among many other rows.
    """

    found: dict[str, Found] = field(default_factory=dict)

    def note(self, table: StreamTable, ranges: Mapping[int, ChangeRange]) -> None:
        """Take note of what was found for a stream table; for a first load nothing is looked for."""
        for each in table.dependencies:
            read = ranges.get(each.relid)
            if each.buffer and read and read.old and read.pages > FEW_PAGES:
                rows = read.delta_rows + read.future_rows
                before = self.found.get(each.buffer, Found(rows, read.pages))
                self.found[each.buffer] = Found(min(rows, before.rows), max(read.pages, before.pages))

    def tidy(self, connection: psycopg.Connection, cleaned: bool) -> None:
        """Vacuum those without an index in which little was found; all of them, if any buffer was `cleaned` just now.

        Give an index to those that stay large.
        """
        found = {buffer: each for buffer, each in self.found.items() if cleaned or each.little}
        self.found = {}
        if not found:
            return
        with translate_errors():
            for (buffer,) in connection.execute(UNINDEXED, [list(found)]).fetchall():
                _vacuum(connection, buffer, shorten=found[buffer].pages > LEAST_INDEXED)
                pages = max(LEAST_INDEXED, found[buffer].rows // WORTH_INDEXING)
                connection.execute(INDEX, {"buffer": buffer, "pages": pages})


def _vacuum(connection: psycopg.Connection, buffer: str, shorten: bool) -> None:
    connection.execute(PATIENCE)
    try:
        with suppress(psycopg.errors.QueryCanceled, psycopg.errors.UndefinedTable):
            vacuum = "VACUUM (SKIP_LOCKED, TRUNCATE {shorten}) {buffer}"
            connection.execute(filled(vacuum, shorten=str(shorten), buffer=buffer))
    finally:
        connection.execute("RESET statement_timeout")
