"""What is set right before a tick: another cluster, replaced views and functions, gaps in capture and in judging."""

from collections.abc import Mapping
from dataclasses import dataclass

import psycopg

from pytrickle.db import translate_errors
from pytrickle.errors import InsufficientPrivilege, PytrickleError

Broken = Mapping[int, PytrickleError]

CHANGED = "SELECT pgt_id, ARRAY[pgt_id] FROM pgtrickle.changed_definitions() AS pgt_id"
GAPS = (
    "SELECT source_relid::oid::bigint, ARRAY(SELECT d.pgt_id FROM pgtrickle.pgt_dependencies AS d"
    " WHERE d.source_relid = t.source_relid) FROM pgtrickle.pgt_change_tracking AS t"
    " WHERE pgtrickle.capture_problem(source_relid) IS NOT NULL"
)
LACKING = (
    "SELECT t.pgt_id, r.sentence, r.remedy FROM pgtrickle.pgt_stream_tables AS t"
    " CROSS JOIN LATERAL pgtrickle.missing_right(t.pgt_id) AS r WHERE r.sentence IS NOT NULL"
)
UNJUDGED = (
    "SELECT source_relid::oid::bigint, '{}'::integer[] FROM pgtrickle.pgt_event_times AS e"
    " WHERE pgtrickle.event_time_problem(e) IS NULL AND pgtrickle.event_time_damage(e) IS NOT NULL"
)


@dataclass(slots=True)
class Health:
    """Looks into definitions and capture before ticks, but only when the system catalogs changed since it was well."""

    fingerprint: str | None = None

    def prepare(self, connection: psycopg.Connection) -> Broken:
        """Notice what makes frontiers void before they are used, and set it right.

        Return what could not be, by the numbers of the stream tables that must not be refreshed until it is.
        """
        with translate_errors():
            row = connection.execute(
                "SELECT pgtrickle.adopt_cluster(), pgtrickle.catalog_fingerprint()", prepare=True
            ).fetchone()
        found = str(row[1]) if row else None
        if found is not None and found == self.fingerprint:
            return {}
        broken: dict[int, PytrickleError] = {}
        mended = _mend(connection, CHANGED, "SELECT pgtrickle.adopt_definition(%s)", broken)
        mended |= _mend(connection, GAPS, "SELECT pgtrickle.repair_capture(%s::oid::regclass)", broken)
        mended |= _mend(connection, UNJUDGED, "SELECT pgtrickle.write_event_time(%s::oid::regclass)", broken)
        broken |= _lacking(connection)
        # What was mended or stays broken is looked into once more.
        self.fingerprint = None if mended or broken else found
        return broken


def _lacking(connection: psycopg.Connection) -> dict[int, PytrickleError]:
    """Return the stream tables for which this role lacks a right, each with the error that says what to grant."""
    with translate_errors():
        rows = connection.execute(LACKING).fetchall()
    return {pgt_id: InsufficientPrivilege(sentence, remedy, sqlstate="42501") for pgt_id, sentence, remedy in rows}


def _mend(connection: psycopg.Connection, found: str, remedy: str, broken: dict[int, PytrickleError]) -> bool:
    """Apply the remedy to all that a query finds; where it fails, the stream tables named beside are broken.

    Return whether anything was found.
    """
    with translate_errors():
        rows = connection.execute(found.encode()).fetchall()
    for damaged, concerned in rows:
        try:
            with translate_errors():
                connection.execute(remedy.encode(), (damaged,))
        except PytrickleError as error:
            if connection.closed:
                raise
            broken.update(dict.fromkeys(concerned, error))
    return bool(rows)
