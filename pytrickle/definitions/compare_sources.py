"""What a project says of sources, their limits and event times, against what the database has."""

from collections.abc import Mapping
from typing import Any

import psycopg

from pytrickle.database import translate_errors
from pytrickle.definitions.differences import Found, changes, named, written
from pytrickle.definitions.values import Change, Project, SourceDefinition
from pytrickle.errors import InvalidArgument

SOURCE_LIMITS, EVENT_TIME = "source limits", "event time"
LIMITS = ("stale_after", "on_stale", "idle_after")
"""The settings of a source that are limits on its silence."""
TIMES = ("event_time", "time_zone", "too_late")
"""Those that are about its event time."""

KNOWN_LIMITS = """
SELECT s.name, l.project, l.stale_after::text, l.on_stale, l.idle_after::text
FROM pgtrickle.pgt_source_limits AS l CROSS JOIN pgtrickle_private.qualified_name(l.source_relid) AS s(name)
WHERE s.name IS NOT NULL ORDER BY s.name
"""
KNOWN_TIMES = """
SELECT s.name, e.project, e.column_name, e.time_zone, e.too_late::text
FROM pgtrickle.pgt_event_times AS e CROSS JOIN pgtrickle_private.qualified_name(e.source_relid) AS s(name)
WHERE s.name IS NOT NULL ORDER BY s.name
"""
# What set_source_limits and set_event_time refuse, they refuse of a plan too. Nothing is locked by asking.
_CHECK_LIMITS = """
SELECT pgtrickle_private.check_loader(current_user, %(source)s::regclass, 'set limits on'),
    pgtrickle_private.check_limits(%(stale_after)s::interval, %(on_stale)s, %(idle_after)s::interval)
"""
_CHECK_TIME = """
SELECT pgtrickle_private.check_event_time(
    %(source)s::regclass, %(event_time)s, %(too_late)s::interval, %(time_zone)s)
"""
_INTERVALS = {"stale_after", "idle_after", "too_late"}


def source_changes(
    connection: psycopg.Connection, project: Project, path: str, stream_tables: frozenset[str]
) -> tuple[Change, ...]:
    """Compare what a project says of sources, and what it owns of them; raise what the database refuses of it.

    `stream_tables` are those that the project defines, for which plain tables stand in while they are new.
    """
    defined = _by_qualified_name(connection, project, path)
    if wrong := sorted(stream_tables & defined.keys()):
        raise InvalidArgument(f"{wrong[0]} is not a table that a loader fills.", "Name the tables that it reads.")
    return tuple(
        change
        for kind in (SOURCE_LIMITS, EVENT_TIME)
        for change in _changes(
            connection, kind, project.name, {name: each for name, each in defined.items() if says(each, kind)}
        )
    )


def says(source: SourceDefinition, kind: str) -> bool:
    """Whether a project says this of a source."""
    decisive = {"stale_after", "idle_after"} if kind == SOURCE_LIMITS else {"event_time"}
    return not decisive.isdisjoint(source.settings)


def known(connection: psycopg.Connection, kind: str) -> dict[str, dict[str, Any]]:
    """Return what the database has of this kind, by the qualified name of the source, with the project that owns it."""
    query, settings = (KNOWN_LIMITS, LIMITS) if kind == SOURCE_LIMITS else (KNOWN_TIMES, TIMES)
    rows = connection.execute(query).fetchall()
    return {name: {"project": owner, **dict(zip(settings, values, strict=True))} for name, owner, *values in rows}


def _by_qualified_name(connection: psycopg.Connection, project: Project, path: str) -> dict[str, SourceDefinition]:
    found: dict[str, SourceDefinition] = {}
    for source in project.sources:
        _refuse_incomplete(source)
        (name,) = named(connection, [source.name], path, "a source")
        if name in found:
            raise InvalidArgument(
                f"The source {name} is defined twice: as {found[name].name} and as {source.name}.",
                "Remove one of them.",
            )
        found[name] = source
    return found


def _refuse_incomplete(source: SourceDefinition) -> None:
    given = source.settings.keys()
    if strangers := sorted(given - {*LIMITS, *TIMES}):
        raise InvalidArgument(
            f"The source {source.name} has an unknown setting {strangers[0]!r}.", f"It has {', '.join(LIMITS + TIMES)}."
        )
    if "on_stale" in given and not says(source, SOURCE_LIMITS):
        raise InvalidArgument(f"The source {source.name} has on_stale alone.", "Give stale_after too.")
    if not says(source, EVENT_TIME) and (lonely := sorted(given & set(TIMES))):
        raise InvalidArgument(
            f"The source {source.name} has {lonely[0]} without event_time.", "Name the column that is its event time."
        )


def _changes(
    connection: psycopg.Connection, kind: str, project: str, defined: Mapping[str, SourceDefinition]
) -> tuple[Change, ...]:
    wanted = {name: (_settings(connection, kind, each), each) for name, each in defined.items()}
    found = changes(kind, project, known(connection, kind), wanted)
    for change in found:
        if change.action != "drop":
            with translate_errors():
                given = {"source": change.name, **wanted[change.name][0]}
                connection.execute(_CHECK_LIMITS if kind == SOURCE_LIMITS else _CHECK_TIME, given)
    return found


def _settings(connection: psycopg.Connection, kind: str, source: SourceDefinition) -> Found:
    names = LIMITS if kind == SOURCE_LIMITS else TIMES
    defaults = {"on_stale": "warn"} if kind == SOURCE_LIMITS else {}
    given = {**defaults, **source.settings}
    return {name: written(connection, given.get(name), name in _INTERVALS) for name in names}
