"""What capture is like at one moment, for who reads the same sources in a later snapshot."""

from collections.abc import Iterable
from dataclasses import dataclass

import psycopg

from pytrickle.errors import RefreshConflict

PRINT = "SELECT pgtrickle_private.capture_print(%(sources)s::text::bigint[])"


@dataclass(frozen=True, slots=True)
class CapturePrint:
    """What the system catalogs say about capture of sources, by their numbers, in the snapshot of a connection."""

    sources: str
    text: str

    @classmethod
    def of(cls, connection: psycopg.Connection, relids: Iterable[int]) -> "CapturePrint | None":
        """Ask for it; None of no sources."""
        sources = f"{{{','.join(map(str, sorted(relids)))}}}"
        return cls(sources, _answer(_ask(connection, sources))) if sources != "{}" else None

    def ask(self, connection: psycopg.Connection) -> psycopg.Cursor:
        """Ask for what a later snapshot shows; see `confirm`."""
        return _ask(connection, self.sources)

    def confirm(self, asked: psycopg.Cursor) -> None:
        """Raise RefreshConflict where something was done to capture: not all that the later snapshot shows is captured.

        So what lies between the two cannot be taken back by what was captured.
        """
        if _answer(asked) != self.text:
            raise RefreshConflict("What is captured of a source was altered meanwhile.", "Nothing needs to be done.")


def _ask(connection: psycopg.Connection, sources: str) -> psycopg.Cursor:
    return connection.execute(PRINT, {"sources": sources}, prepare=True)


def _answer(asked: psycopg.Cursor) -> str:
    (text,) = asked.fetchone() or ("",)
    return str(text)
