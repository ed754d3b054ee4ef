"""What was altered while a tick read: queries take functions, enums and children as they are, not as a snapshot shows.

What was refreshed meanwhile may be made of both, the old and the new; if all is put back before the next tick looks,
nothing else would tell.
"""

from dataclasses import dataclass

import psycopg

from pytrickle.database import translate_errors

ALL = "SELECT pgtrickle_private.meanings()"
EACH = "SELECT s.pgt_id, pgtrickle_private.meaning_of(s), s.frontier_version FROM pgtrickle.pgt_stream_tables AS s"
MARK = "SELECT pgtrickle_private.mark_reinitialize(%s, 'what its query calls or reads was altered while it was read')"


@dataclass(slots=True)
class Meanings:
    """Remembers what all of this was like when a tick ended."""

    known: str | None = None

    def begin(self, snapshot_connection: psycopg.Connection) -> None:
        """Look at it in a snapshot, where no tick did before."""
        if self.known is None:
            with translate_errors():
                self.known = _all(snapshot_connection)

    def settle(self, connection: psycopg.Connection, snapshot_connection: psycopg.Connection) -> None:
        """Have computed anew what was refreshed since the snapshot, if what it calls or reads was altered since."""
        with translate_errors():
            before, self.known = self.known, _all(connection)
            if self.known == before:
                return
            then, now = (_each(each) for each in (snapshot_connection, connection))
            for pgt_id, (meaning, version) in now.items():
                if pgt_id in then and meaning != then[pgt_id][0] and version != then[pgt_id][1]:
                    connection.execute(MARK, (pgt_id,))


def _all(connection: psycopg.Connection) -> str:
    (found,) = connection.execute(ALL, prepare=True).fetchone() or ("",)
    return str(found)


def _each(connection: psycopg.Connection) -> dict[int, tuple[str, int]]:
    return {pgt_id: (meaning, version) for pgt_id, meaning, version in connection.execute(EACH)}
