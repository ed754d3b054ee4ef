"""Whether all is well before a tick: it sees the system catalogs as they were when they were looked into."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from time import monotonic

import psycopg

from pytrickle.catalog.install import verify
from pytrickle.database import Snapshot, Snapshots, translate_errors
from pytrickle.errors import PytrickleError, RefreshConflict
from pytrickle.schedule.meanings import ALL, Meanings
from pytrickle.schedule.mending import Broken, Mending

VERSION = """(SELECT string_agg(concat(v.version, ' ', v.checksum), ',' ORDER BY v.version)
    FROM pgtrickle.pgt_schema_version AS v)"""
LOOK = f"SELECT pgtrickle_private.catalog_fingerprint(), {VERSION} FROM pgtrickle_private.adopt_restored()"
SHOWN = f"SELECT pgtrickle_private.catalog_fingerprint(), {VERSION}, {ALL}, pgtrickle_private.restored()"
CAPTURED = """
SELECT pgtrickle_private.capture_print(
    ARRAY(SELECT t.source_relid::oid::bigint FROM pgtrickle.pgt_change_tracking AS t))
"""
CONSUMERS = "SELECT DISTINCT d.pgt_id FROM pgtrickle.pgt_dependencies AS d"
# So often the catalogs are looked into once more where they were altered meanwhile.
LOOKS = 3
JUDGED_AGAIN = timedelta(seconds=30)
ALTERED_AGAIN = "What is captured was altered again and again before it could be read."


@dataclass(frozen=True, slots=True)
class Look:
    """What the system catalogs were like, as texts: all that concerns stream tables, and the version of the catalog."""

    fingerprint: str
    version: str


@dataclass(slots=True)
class Health:
    """Looks into definitions and capture before ticks, but only when the system catalogs changed since it did.

    `seen` is what they were like then, and `captured` as far as capture is concerned; `broken` is what could not be set
    right, and with `unsettled` that is tried once more. Whoever installs another version does not know of refreshers
    that go on running, on whatever machine: so each looks whether the catalog is still its own.
    """

    seen: Look | None = None
    captured: str = ""
    broken: dict[int, PytrickleError] = field(default_factory=dict)
    unsettled: bool = False
    judging_from: float = 0.0
    meanings: Meanings = field(default_factory=Meanings)

    @contextmanager
    def snapshot(
        self, connection: psycopg.Connection, snapshots: Snapshots, asked: bool = False
    ) -> Iterator[tuple[Snapshot, Broken]]:
        """Hold a snapshot in which the system catalogs are as they were when they were looked into, by a connection.

        Give with it why stream tables must not be refreshed in it, by their numbers. What was done to capture after
        the look would be shown by the snapshot, but not have been captured. What queries take as it is, whatever the
        snapshot, is in `meanings`. See `prepare` for errors.
        """
        for look in range(1, LOOKS + 1):
            if self.seen is None or self.unsettled:
                self.prepare(connection, asked)
            with snapshots.export() as base:
                began = monotonic()
                broken = self._broken_in(base.connection, last=look == LOOKS)
                if broken is not None:
                    # The look is no part of any refresh.
                    yield replace(base, taken=base.taken + monotonic() - began), broken
                    return
            self.seen = None

    def prepare(self, connection: psycopg.Connection, asked: bool = False) -> None:
        """Notice what makes frontiers void before they are used, and set it right.

        What concerns only stream tables that ticks leave alone now is not set right unless somebody `asked`. Raise
        CatalogVersionMismatch where the catalog was upgraded meanwhile, RestoreUnderWay where it is not there
        completely yet.
        """
        self.seen = None
        failed: dict[tuple[str, int], PytrickleError] = {}
        for _ in range(LOOKS):
            mending = Mending(connection, asked, failed)
            with translate_errors():
                row = connection.execute(LOOK, prepare=True).fetchone() or ("", "")
                (self.captured,) = connection.execute(CAPTURED).fetchone() or ("",)
            verify(connection)
            mending.set_right()
            self._judge(mending)
            if not mending.mended:
                break
        self.seen = Look(*map(str, row))
        self.broken, self.unsettled = mending.broken, bool(failed or mending.broken)

    def _judge(self, mending: Mending) -> None:
        """Have late rows judged; where that fails it is tried later."""
        due = monotonic() >= self.judging_from
        if mending.judge(due) and due:
            self.judging_from = monotonic() + JUDGED_AGAIN.total_seconds()

    def _broken_in(self, connection: psycopg.Connection, last: bool) -> Broken | None:
        """Return what is broken in a snapshot, or None where it does not show what was looked into.

        At the `last` try it is enough that nothing was done to capture; else nothing is refreshed in it.
        """
        with translate_errors():
            row = connection.execute(SHOWN, prepare=True).fetchone()
            fingerprint, version, meaning, restored = row or ("", "", "", None)
            self.meanings.begin(meaning, fingerprint, connection)
            if restored is None and self.seen == Look(str(fingerprint), str(version)):
                return self.broken
            if not last:
                return None
            captured = connection.execute(CAPTURED).fetchone()
            if captured == (self.captured,):
                return self.broken
            consumers = [pgt_id for (pgt_id,) in connection.execute(CONSUMERS)]
        return dict.fromkeys(consumers, RefreshConflict(ALTERED_AGAIN, "Nothing needs to be done."))
