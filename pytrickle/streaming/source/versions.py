"""Which versions bound what is read."""

from __future__ import annotations

from datetime import datetime

import psycopg

from pytrickle.database import translate_errors
from pytrickle.errors import InvalidArgument, NotRetained
from pytrickle.streaming.source.changes import Between, newest_version, version_at
from pytrickle.streaming.source.columns import Relation
from pytrickle.streaming.source.options import Bound, Options

_VERSION = "SELECT watermark, batch FROM pgtrickle.versions(%s::oid::regclass) WHERE version = %s"
_BEFORE = "SELECT max(version) FROM pgtrickle.versions(%s::oid::regclass) WHERE version < %s"
_NTH = """
SELECT max(version) FROM (
    SELECT version FROM pgtrickle_private.version_ranges(%s::oid::regclass, %s, %s) ORDER BY version LIMIT %s) AS v
"""
_GROUP = """
SELECT pgtrickle_private.check_group_at(%s::oid::regclass, %s, ROW(%s::timestamptz, %s::bigint)::pgtrickle.progress)
"""


def version_read(connection: psycopg.Connection, found: Relation, options: Options) -> int | None:
    """Return the version that a table is read at; None to read it as it is now."""
    if options.as_of is None:
        return options.version
    if options.group is not None:
        kinds = (None, options.as_of) if isinstance(options.as_of, int) else (options.as_of, None)
        with translate_errors():
            connection.execute(_GROUP, (found.relid, options.group, *kinds))
    return version_at(connection, found, options.as_of)


def between(connection: psycopg.Connection, found: Relation, options: Options) -> Between:
    """Return the versions that the changes lie between: after the first, up to the last."""
    if options.starting.at is None:
        hint = "Give startingVersion or startingTimestamp: pgtrickle.versions() lists what can be read."
        raise InvalidArgument("The changes have no beginning.", hint)
    first = _bounded(connection, found, options.starting, before=options.starting.inclusive)
    if options.ending.at is None:
        last = newest_version(connection, found)
    else:
        last = _bounded(connection, found, options.ending, before=not options.ending.inclusive)
    return Between(first, max(first, last), options.net, options.updates)


def next_version(connection: psycopg.Connection, found: Relation, since: int, until: int, most: int | None) -> int:
    """Return the version through which the next batch reads: at most so many versions farther."""
    with translate_errors():
        ((version,),) = connection.execute(_NTH, (found.relid, since, until, most)).fetchall()
    return since if version is None else int(version)


def _bounded(connection: psycopg.Connection, found: Relation, bound: Bound, before: bool) -> int:
    """Return the version at a bound, or the one before it where its own changes are on the other side."""
    assert bound.at is not None
    if bound.by_version:
        assert isinstance(bound.at, int)
        return _previous(connection, found, bound.at) if before else bound.at
    version = version_at(connection, found, bound.at)
    exactly = bound.at in _progress(connection, found, version)
    return _previous(connection, found, version) if before and exactly else version


def _progress(connection: psycopg.Connection, found: Relation, version: int) -> tuple[datetime | int | None, ...]:
    with translate_errors():
        return connection.execute(_VERSION, (found.relid, version)).fetchone() or ()


def _previous(connection: psycopg.Connection, found: Relation, version: int) -> int:
    with translate_errors():
        ((previous,),) = connection.execute(_BEFORE, (found.relid, version)).fetchall()
    if previous is None:
        hint = "Read the table as of that version, and its changes with startingBoundInclusive false."
        raise NotRetained(f"No version of {found.name} before {version} is known.", hint)
    return int(previous)
