"""Carrying out what a project says of sources."""

from collections.abc import Callable, Iterable, Mapping

import psycopg

from pytrickle.definitions.compare_sources import EVENT_TIME, LIMITS, SOURCE_LIMITS, TIMES, says
from pytrickle.definitions.differences import named
from pytrickle.definitions.values import Change, Project, SourceDefinition

_SET_LIMITS = "SELECT pgtrickle.set_source_limits(%s::regclass, %s::interval, %s, %s::interval)"
_UNSET_LIMITS = "SELECT pgtrickle.set_source_limits(%s::regclass, NULL)"
_SET_TIME = "SELECT pgtrickle.set_event_time(%s::regclass, %s, %s::interval, %s)"
_UNSET_TIME = "SELECT pgtrickle.unset_event_time(%s::regclass)"
_OWN_LIMITS = """
UPDATE pgtrickle.pgt_source_limits SET project = %s WHERE project IS NULL AND source_relid = ANY (%s::regclass[])
"""
_OWN_TIMES = """
UPDATE pgtrickle.pgt_event_times SET project = %s WHERE project IS NULL AND source_relid = ANY (%s::regclass[])
"""

Run = Callable[[psycopg.Connection, Change], object]


def apply_source(connection: psycopg.Connection, change: Change) -> None:
    """Set, change or unset the limits or the event time of a source, which the change names with its schema."""
    CARRIED_OUT[change.kind](connection, change)


def own_sources(connection: psycopg.Connection, project: Project, path: str) -> None:
    """Note that all that the project says of sources is its own, also what was there before."""
    for kind, statement in ((SOURCE_LIMITS, _OWN_LIMITS), (EVENT_TIME, _OWN_TIMES)):
        names = [source.name for source in project.sources if says(source, kind)]
        connection.execute(statement, (project.name, named(connection, names, path, "a source")))


def _limits(connection: psycopg.Connection, change: Change) -> None:
    if change.action == "drop":
        connection.execute(_UNSET_LIMITS, (change.name,))
        return
    stale_after, on_stale, idle_after = _texts(change.step, LIMITS)
    connection.execute(_SET_LIMITS, (change.name, stale_after, on_stale or "warn", idle_after))


def _time(connection: psycopg.Connection, change: Change) -> None:
    if change.action == "drop":
        connection.execute(_UNSET_TIME, (change.name,))
        return
    column, zone, too_late = _texts(change.step, TIMES)
    connection.execute(_SET_TIME, (change.name, column, too_late, zone))


def _texts(source: SourceDefinition, names: Iterable[str]) -> list[str | None]:
    """Return settings as texts, of which the database makes what it needs; a file may have a number of seconds."""
    return [str(source.settings[name]) if name in source.settings else None for name in names]


CARRIED_OUT: Mapping[str, Run] = {SOURCE_LIMITS: _limits, EVENT_TIME: _time}
