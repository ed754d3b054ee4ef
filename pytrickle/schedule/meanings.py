"""What was altered while a tick read: queries take functions, enums and children as they are, not as a snapshot shows.

What was refreshed meanwhile may be made of both, the old and the new; if all is put back before the next tick looks,
nothing else would tell.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

import psycopg

from pytrickle.database import translate_errors

ALL = "pgtrickle_private.meanings()"
EACH = "SELECT s.pgt_id, pgtrickle_private.meaning_of(s) FROM pgtrickle.pgt_stream_tables AS s"
MARK = "SELECT pgtrickle_private.mark_reinitialize(%s, 'what its query calls or reads was altered while it was read')"


@dataclass(slots=True)
class Meanings:
    """What all of this was like in the snapshot of a tick, as a text, and for each stream table by its number.

    The latter is read only where the system catalogs are not as they were `seen`.
    """

    known: str = ""
    each: dict[int, str] = field(default_factory=dict)
    seen: object = None

    def begin(self, found: str, seen: object, snapshot_connection: psycopg.Connection) -> None:
        """Remember what was found in a snapshot."""
        if (self.known, self.seen) != (found, seen):
            self.each = _each(snapshot_connection)
            self.known, self.seen = found, seen

    def settle(self, connection: psycopg.Connection, found: str, refreshed: Collection[int]) -> None:
        """Have computed anew what was refreshed, if what it calls or reads is not as it was in the snapshot."""
        if found == self.known:
            return
        with translate_errors():
            now = _each(connection)
            for pgt_id in refreshed:
                if pgt_id in now and now[pgt_id] != self.each.get(pgt_id):
                    connection.execute(MARK, (pgt_id,))


def _each(connection: psycopg.Connection) -> dict[int, str]:
    return dict(connection.execute(EACH).fetchall())
