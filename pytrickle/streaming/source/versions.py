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
_CHECK = "SELECT pgtrickle_private.check_version(%s::oid::regclass, %s)"
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
    newest = newest_version(connection, found)
    start = _version(connection, found, options.starting, newest)
    end = newest if options.ending.at is None else _version(connection, found, options.ending, newest)
    if start > end or _is_before(options.ending, options.starting):
        raise InvalidArgument("The changes end before they begin.", "Give an end that is not before the beginning.")
    first = _bounded(connection, found, options.starting, start, before=options.starting.inclusive)
    last = _bounded(connection, found, options.ending, end, before=not options.ending.inclusive)
    # Between two versions that follow each other, both left out, there is nothing.
    return Between(first, max(first, last), options.net, options.updates)


def next_version(connection: psycopg.Connection, found: Relation, since: int, until: int, most: int | None) -> int:
    """Return the version through which the next batch reads: at most so many versions farther."""
    with translate_errors():
        ((version,),) = connection.execute(_NTH, (found.relid, since, until, most)).fetchall()
    return since if version is None else int(version)


def _is_before(one: Bound, other: Bound) -> bool:
    """Whether one of two bounds of one kind, which may mean one version, lies before the other."""
    if one.at is None or other.at is None or type(one.at) is not type(other.at) or one.by_version != other.by_version:
        return False
    return bool(one.at < other.at)  # type: ignore[operator]


def _version(connection: psycopg.Connection, found: Relation, bound: Bound, newest: int) -> int:
    """Return the version at a bound; raise NotRetained where a number is that of none that there was."""
    assert bound.at is not None
    if not bound.by_version:
        return version_at(connection, found, bound.at)
    assert isinstance(bound.at, int)
    if bound.at > newest:
        with translate_errors():
            connection.execute(_CHECK, (found.relid, bound.at))
    return bound.at


def _bounded(connection: psycopg.Connection, found: Relation, bound: Bound, version: int, before: bool) -> int:
    """Return the version at a bound, or the one before it where its own changes are on the other side."""
    if not before or bound.at is None:
        return version
    exactly = bound.by_version or bound.at in _progress(connection, found, version)
    return _previous(connection, found, version) if exactly else version


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
