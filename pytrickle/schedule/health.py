"""What is set right before a tick: another cluster, replaced views and functions, gaps in capture and in judging."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic

import psycopg
from psycopg import sql

from pytrickle.catalog.install import verify
from pytrickle.database import filled, has_any_bytes, translate_errors, trusted
from pytrickle.errors import CatalogError, InsufficientPrivilege, LockTimeout, PytrickleError

Broken = Mapping[int, PytrickleError]
Statement = sql.SQL | sql.Composed

LOOK = """
SELECT pgtrickle_private.adopt_restored(), pgtrickle_private.catalog_fingerprint(),
    (SELECT string_agg(concat(v.version, ' ', v.checksum), ',' ORDER BY v.version)
        FROM pgtrickle.pgt_schema_version AS v)
"""
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
UNGUARDED = filled(DAMAGED, found="SELECT pgt_id, ARRAY[pgt_id] FROM pgtrickle_private.unguarded() AS pgt_id")
UNLOGGED = filled(
    DAMAGED,
    found="SELECT DISTINCT u.pgt_id, ARRAY[u.pgt_id] FROM pgtrickle_private.unlogged_storage() AS u",
)
UNIDENTIFIED = filled(DAMAGED, found="SELECT u.relation, u.pgt_ids FROM pgtrickle_private.unidentified() AS u")
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
# Shorter than what a refresh waits: several sources may be damaged, and all that is to be done waits for them.
PATIENCE = "400ms"
JUDGED_AGAIN = timedelta(seconds=30)


@dataclass(slots=True)
class Health:
    """Looks into definitions and capture before ticks, but only when the system catalogs changed since it was well.

    Whoever installs another version does not know of refreshers that go on running, on whatever machine: so each looks
    whether the catalog is still its own.
    """

    fingerprint: str | None = None
    version: str | None = None
    judging_from: float = 0.0

    def prepare(self, connection: psycopg.Connection, asked: bool = False) -> Broken:
        """Notice what makes frontiers void before they are used, and set it right.

        Return what could not be, by the numbers of the stream tables that must not be refreshed until it is. What
        concerns only stream tables that ticks leave alone now is not set right unless somebody `asked`.
        Raise CatalogVersionMismatch where the catalog was upgraded meanwhile, RestoreUnderWay where it is not there
        completely yet.
        """
        with translate_errors():
            row = connection.execute(LOOK, prepare=True).fetchone()
        found, version = (str(row[1]), str(row[2])) if row else (None, None)
        if version == self.version and found is not None and found == self.fingerprint:
            return {}
        verify(connection)
        self.version = version
        broken: dict[int, PytrickleError] = {}
        mended = _mend(connection, DROPPED, "SELECT pgtrickle_private.remove_dropped(%s)", broken, asked)
        mended |= _mend(connection, CHANGED, "SELECT pgtrickle_private.adopt_definition(%s)", broken, asked)
        mended |= _mend(connection, GAPS, "SELECT pgtrickle.repair_capture(%s::oid::regclass)", broken, asked)
        mended |= _mend(connection, ALTERED, REMEMBER, {}, asked)
        mended |= _mend(connection, MAKERS, ADMIT, {}, asked)
        mended |= _mend(connection, UNGUARDED, "SELECT pgtrickle_private.guard_every_row(%s)", broken, asked)
        mended |= _mend(connection, UNLOGGED, "SELECT pgtrickle_private.log_storage(%s)", broken, asked)
        mended |= _mend(connection, UNIDENTIFIED, IDENTIFY, broken, asked)
        mended |= _mend(connection, MISNAMED, "SELECT pgtrickle_private.take_name(%s)", {}, asked)
        mended |= self._judge(connection)
        broken |= _lacking(connection)
        if has_any_bytes(connection):
            broken |= _unreadable(connection)
        # What was mended or stays broken is looked into once more.
        self.fingerprint = None if mended or broken else found
        return broken

    def _judge(self, connection: psycopg.Connection) -> bool:
        """Install anew the triggers that judge late rows; where that fails it is tried later, and no table fails."""
        failed: dict[int, PytrickleError] = {}
        remedy = "SELECT pgtrickle_private.write_event_time(%s::oid::regclass)"
        found = _mend(connection, UNJUDGED, remedy, failed, monotonic() >= self.judging_from)
        if failed and monotonic() >= self.judging_from:
            self.judging_from = monotonic() + JUDGED_AGAIN.total_seconds()
        return found


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


def _mend(
    connection: psycopg.Connection,
    found: sql.SQL | sql.Composed,
    remedy: str,
    broken: dict[int, PytrickleError],
    asked: bool,
) -> bool:
    """Apply the remedy to all that a query finds; where it fails, the stream tables named beside are broken.

    Return whether anything was found.
    """
    with translate_errors():
        rows = connection.execute(found, {"asked": asked}).fetchall()
    for damaged, concerned, awaited in rows:
        try:
            if not awaited:
                raise LockTimeout("What may have been missed is not set right yet.")
            with translate_errors(), connection.transaction():
                connection.execute(filled("SET LOCAL lock_timeout = {patience}", patience=sql.Literal(PATIENCE)))
                connection.execute(trusted(remedy), (damaged,))
        except PytrickleError as error:
            if connection.closed:
                raise
            broken.update(dict.fromkeys(concerned, error))
    return bool(rows)
