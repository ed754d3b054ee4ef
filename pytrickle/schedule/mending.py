"""What is set right before a tick: replaced views and functions, gaps in capture and in judging, lost names."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import psycopg
from psycopg import sql

from pytrickle.database import filled, has_any_bytes, translate_errors, trusted
from pytrickle.errors import CatalogError, InsufficientPrivilege, LockTimeout, PytrickleError

Broken = Mapping[int, PytrickleError]
Statement = sql.SQL | sql.Composed

# Each row: what is damaged, which stream tables must not be refreshed until it is mended, whether to mend it now. What
# could not be mended makes those fail; while they are left alone after that, nobody is kept waiting for them.
DAMAGED = """
SELECT damaged, concerned, EXISTS (
    SELECT FROM pgtrickle.pgt_stream_tables AS t
    WHERE t.pgt_id = ANY (concerned) AND (%(asked)s OR pgtrickle_private.halted(t) IS NULL
        OR EXISTS (SELECT FROM pgtrickle.pgt_refresh_requests AS r WHERE r.pgt_id = t.pgt_id)))
FROM ({found}) AS d (damaged, concerned)
"""
CHANGED = filled(DAMAGED, found="SELECT pgt_id, ARRAY[pgt_id] FROM pgtrickle_private.changed_definitions() AS pgt_id")
GAPS = filled(
    DAMAGED,
    found="""
    SELECT source_relid::oid::bigint,
        ARRAY(SELECT d.pgt_id FROM pgtrickle.pgt_dependencies AS d WHERE d.source_relid = t.source_relid)
    FROM pgtrickle.pgt_change_tracking AS t
    WHERE pgtrickle.capture_problem(source_relid) IS NOT NULL
    """,
)
# A feed keeps nothing from being refreshed, and is to be cut off though no stream table reads its source.
FEED_GAPS = trusted("""
SELECT DISTINCT f.source_relid::oid::bigint, ARRAY[0], %(asked)s IS NOT NULL FROM pgtrickle.pgt_feeds AS f
WHERE f.cut_off_at IS NULL AND pgtrickle.capture_problem(f.source_relid) IS NOT NULL
""")
UNGUARDED = filled(DAMAGED, found="SELECT pgt_id, ARRAY[pgt_id] FROM pgtrickle_private.unguarded() AS pgt_id")
UNLOGGED = filled(
    DAMAGED,
    found="SELECT DISTINCT u.pgt_id, ARRAY[u.pgt_id] FROM pgtrickle_private.unlogged_storage() AS u",
)
UNIDENTIFIED = filled(DAMAGED, found="SELECT u.relation, u.pgt_ids FROM pgtrickle_private.unidentified() AS u")
MAKE_GOOD = "SELECT pgtrickle_private.make_good(%s::oid::regclass)"
IDENTIFY = "SELECT pgtrickle_private.identify_rows(%s::oid::regclass)"
DROPPED = trusted(
    "SELECT d.pgt_id, ARRAY[d.pgt_id], %(asked)s IS NOT NULL FROM pgtrickle_private.plainly_dropped() AS d"
)
# A name that is not right keeps nothing from being refreshed.
MISNAMED = trusted("SELECT m.pgt_id, ARRAY[0], %(asked)s IS NOT NULL FROM pgtrickle_private.misnamed() AS m")
# What was altered without harm is remembered, so that later alterations are told from it.
ALTERED = trusted("""
SELECT a::oid::bigint, ARRAY[0], %(asked)s IS NOT NULL FROM pgtrickle_private.altered_harmlessly() AS a
""")
REMEMBER = "SELECT pgtrickle_private.remember_alterations(%s::oid::regclass)"
# A partitioned source has another owner, who is to make partitions of it.
MAKERS = trusted("""
SELECT m.callable::oid::bigint, ARRAY[0], %(asked)s IS NOT NULL
FROM pgtrickle_private.partition_makers() AS m JOIN pg_proc AS p ON p.oid = m.callable
WHERE NOT m.granted AND pg_has_role(p.proowner, 'USAGE')
""")
ADMIT = "SELECT pgtrickle_private.admit_partition_makers() WHERE %s::oid IS NOT NULL"
LACKING = """
SELECT t.pgt_id, pgtrickle_private.readable_text(r.sentence), pgtrickle_private.readable_text(r.remedy)
FROM pgtrickle.pgt_stream_tables AS t, pgtrickle_private.missing_right(t.pgt_id) AS r
WHERE r.sentence IS NOT NULL
"""
UNREADABLE = """
SELECT t.pgt_id, pgtrickle_private.readable_text(format('%I.%I', t.pgt_schema, t.pgt_name)), u.sentence
FROM pgtrickle.pgt_stream_tables AS t, pgtrickle_private.unreadable_of(t) AS u (sentence)
WHERE u.sentence IS NOT NULL
"""
UNJUDGED = trusted("""
SELECT source_relid::oid::bigint, ARRAY[0], %(asked)s
FROM pgtrickle.pgt_event_times AS e
WHERE pgtrickle_private.event_time_problem(e) IS NULL AND pgtrickle_private.event_time_damage(e) IS NOT NULL
""")
JUDGE = "SELECT pgtrickle_private.write_event_time(%s::oid::regclass)"
# Shorter than what a refresh waits: several sources may be damaged, and all that is to be done waits for them.
PATIENCE = "400ms"


@dataclass(slots=True)
class Mending:
    """One round of setting right what is damaged; what `failed` in a round before is not tried once more.

    `broken` are the stream tables that must not be refreshed, by their numbers, and why. `mended` says that something
    was set right, so that the system catalogs are not as they were. What concerns only stream tables that ticks leave
    alone now is not set right unless somebody `asked`.
    """

    connection: psycopg.Connection
    asked: bool
    failed: dict[tuple[str, int], PytrickleError]
    broken: dict[int, PytrickleError] = field(default_factory=dict)
    mended: bool = False

    def set_right(self) -> None:
        """Set right all that is damaged, but for the judging of late rows."""
        self.apply(DROPPED, "SELECT pgtrickle_private.remove_dropped(%s)")
        self.apply(CHANGED, "SELECT pgtrickle_private.adopt_definition(%s)")
        self.apply(FEED_GAPS, MAKE_GOOD, harmless=True)
        self.apply(GAPS, MAKE_GOOD)
        self.apply(ALTERED, REMEMBER, harmless=True)
        self.apply(MAKERS, ADMIT, harmless=True)
        self.apply(UNGUARDED, "SELECT pgtrickle_private.guard_every_row(%s)")
        self.apply(UNLOGGED, "SELECT pgtrickle_private.log_storage(%s)")
        self.apply(UNIDENTIFIED, IDENTIFY)
        self.apply(MISNAMED, "SELECT pgtrickle_private.take_name(%s)", harmless=True)
        self.broken |= _lacking(self.connection)
        if has_any_bytes(self.connection):
            self.broken |= _unreadable(self.connection)

    def judge(self, due: bool) -> bool:
        """Install anew the triggers that judge late rows, if that is due; return whether any are still not right."""
        before = len(self.failed)
        self.apply(UNJUDGED, JUDGE, harmless=True, asked=due)
        return len(self.failed) > before

    def apply(self, found: Statement, remedy: str, harmless: bool = False, asked: bool | None = None) -> None:
        """Apply the remedy to all that a query finds; where it fails, what is concerned is broken unless `harmless`."""
        with translate_errors():
            rows = self.connection.execute(found, {"asked": self.asked if asked is None else asked}).fetchall()
        for damaged, concerned, awaited in rows:
            error = self.failed.get((remedy, damaged)) or self._try(remedy, damaged, awaited)
            if error is None:
                self.mended = True
                continue
            self.failed[remedy, damaged] = error
            if not harmless:
                self.broken.update(dict.fromkeys(concerned, error))

    def _try(self, remedy: str, damaged: int, awaited: bool) -> PytrickleError | None:
        try:
            if not awaited:
                return LockTimeout("What may have been missed is not set right yet.")
            with translate_errors(), self.connection.transaction():
                self.connection.execute(filled("SET LOCAL lock_timeout = {patience}", patience=sql.Literal(PATIENCE)))
                self.connection.execute(trusted(remedy), (damaged,))
        except PytrickleError as error:
            if self.connection.closed:
                raise
            return error
        return None


def _lacking(connection: psycopg.Connection) -> dict[int, PytrickleError]:
    """Return the stream tables for which this role lacks a right, each with the error that says what to grant."""
    with translate_errors():
        rows = connection.execute(LACKING).fetchall()
    return {pgt_id: InsufficientPrivilege(sentence, remedy, sqlstate="42501") for pgt_id, sentence, remedy in rows}


def _unreadable(connection: psycopg.Connection) -> dict[int, PytrickleError]:
    """Return the stream tables of which names or queries came to have bytes that are no UTF-8."""
    with translate_errors():
        rows = connection.execute(UNREADABLE).fetchall()
    hint = "Rename it: the refresher reads all names and queries as UTF-8."
    return {pgt_id: CatalogError(f"{name} cannot be refreshed: {what}.", hint) for pgt_id, name, what in rows}
