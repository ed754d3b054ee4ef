"""How far a stream of changes has come: where it begins, what is complete now, and what was read."""

from __future__ import annotations

import psycopg

from pytrickle.database import connect, translate_errors
from pytrickle.errors import InvalidArgument, NotRetained
from pytrickle.streaming.source.changes import newest_version
from pytrickle.streaming.source.columns import relation
from pytrickle.streaming.source.options import Options
from pytrickle.streaming.source.versions import between, next_version

_FEED = "SELECT read_version FROM pgtrickle.feeds() WHERE feed = %s"
_FOLLOWS = "SELECT relation, to_regclass(relation) <> %s::oid::regclass FROM pgtrickle.feeds() WHERE feed = %s"
_ADVANCE = "SELECT pgtrickle.advance_feed(%s, %s)"


def first(options: Options) -> int:
    """Return the version that the first batch begins after: as the options say, else where the feed was read to."""
    with connect(options.dsn, role="reader") as connection:
        found = relation(connection, options.table)
        if options.starting.at is not None:
            return between(connection, found, options).since
        read = _read_version(connection, options.feed) if options.feed else None
        if read is None:
            hint = "Give startingVersion, the version that you have, and startingBoundInclusive false."
            raise InvalidArgument("The changes have no beginning.", hint)
        return read


def check_feed(options: Options) -> None:
    """Raise NotRetained for a feed that is not there, InvalidArgument for one of another table."""
    if options.feed is None:
        return
    with connect(options.dsn, role="reader") as connection:
        found = relation(connection, options.table)
        with translate_errors():
            row = connection.execute(_FOLLOWS, (found.relid, options.feed)).fetchone()
    if row is None:
        raise _no_feed(options.feed)
    if row[1]:
        hint = f"Name a feed of {found.name}: pgtrickle.feeds() lists those that there are."
        raise InvalidArgument(f"The feed {options.feed!r} follows {row[0]}, not {found.name}.", hint)


def latest(options: Options, since: int | None = None, target: int | None = None, most: int | None = None) -> int:
    """Return the version through which is complete: at most so many after the last one read, and not after a target."""
    with connect(options.dsn, role="reader") as connection:
        found = relation(connection, options.table)
        newest = newest_version(connection, found) if target is None else target
        return newest if since is None else next_version(connection, found, since, max(since, newest), most)


def committed(options: Options, version: int) -> None:
    """Say how far the feed was read, if there is one: then its changes need not be kept."""
    if options.feed:
        with connect(options.dsn, role="reader") as connection, translate_errors():
            connection.execute(_ADVANCE, (options.feed, version))


def _read_version(connection: psycopg.Connection, feed: str) -> int | None:
    with translate_errors():
        row = connection.execute(_FEED, (feed,)).fetchone()
    if row is None:
        raise _no_feed(feed)
    return None if row[0] is None else int(row[0])


def _no_feed(feed: str) -> NotRetained:
    return NotRetained(f"There is no feed {feed!r}.", "Create it, and read the table as a whole before its changes.")
