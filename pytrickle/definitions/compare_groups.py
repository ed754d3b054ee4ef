"""What the groups of a project differ in from those of the database."""

from collections.abc import Iterable, Mapping
from typing import Any

import psycopg

from pytrickle.catalog.silence_limits import TYPES, tolerance_of_a_kind
from pytrickle.database import translate_errors
from pytrickle.definitions.values import Change, GroupDefinition, Project
from pytrickle.errors import CatalogError, InvalidArgument

WATERMARK_GROUP, REFRESH_GROUP = "watermark group", "refresh group"
SETTINGS = ("tolerance", "batch_tolerance", "stale_after", "on_stale", "idle_after")
WATERMARK_GROUPS = """
SELECT group_name, project,
    ARRAY(SELECT coalesce(pgtrickle_private.qualified_name(s), s::oid::text) FROM unnest(sources) AS s),
    tolerance::text, batch_tolerance::text, stale_after::text, on_stale, idle_after::text
FROM pgtrickle.pgt_watermark_groups ORDER BY group_name
"""
REFRESH_GROUPS = """
SELECT group_name, project,
    ARRAY(SELECT coalesce(pgtrickle_private.qualified_name(m), m::oid::text) FROM unnest(members) AS m), isolation
FROM pgtrickle.pgt_refresh_groups ORDER BY group_name
"""
NAMED = "SELECT pgtrickle_private.qualified_name(pgtrickle_private.relation_named(%s, %s))"
AS_INTERVAL = "SELECT %s::interval::text"

Found = Mapping[str, Any]


def watermark_group_changes(
    connection: psycopg.Connection, project: Project, path: str, anew: frozenset[str]
) -> tuple[Change, ...]:
    """Compare the watermark groups of a project, and those that it owns; `anew` are tables to be created anew."""
    now = {
        name: {"project": owner, "members": members, **dict(zip(SETTINGS, settings, strict=True))}
        for name, owner, members, *settings in connection.execute(WATERMARK_GROUPS)
    }
    wanted = {each.name: _watermark_group(connection, each, path) for each in project.watermark_groups}
    return _changes(WATERMARK_GROUP, project, now, wanted, anew)


def refresh_group_changes(
    connection: psycopg.Connection, project: Project, path: str, anew: frozenset[str]
) -> tuple[Change, ...]:
    """Compare the refresh groups of a project, and those that it owns; `anew` are tables to be created anew."""
    now = {
        name: {"project": owner, "members": members, "isolation": isolation}
        for name, owner, members, isolation in connection.execute(REFRESH_GROUPS)
    }
    wanted = {each.name: _refresh_group(connection, each, path) for each in project.refresh_groups}
    return _changes(REFRESH_GROUP, project, now, wanted, anew)


def arguments_of(group: GroupDefinition) -> dict[str, Any]:
    """Return the settings of a watermark group as create_watermark_group takes them."""
    given = dict(group.settings)
    if strangers := sorted(given.keys() - set(SETTINGS)):
        raise InvalidArgument(f"A watermark group has no {strangers[0]!r}.", f"It has {', '.join(SETTINGS)}.")
    return given | (tolerance_of_a_kind(given.pop("tolerance")) if "tolerance" in given else {})


def _watermark_group(connection: psycopg.Connection, group: GroupDefinition, path: str) -> Found:
    given = arguments_of(group)
    given.setdefault("on_stale", "warn")
    given.setdefault("tolerance", None if given.get("batch_tolerance") is not None else "0")
    settings = {name: _written(connection, name, given.get(name)) for name in SETTINGS}
    return {"members": _named(connection, group.members, path), **settings}


def _refresh_group(connection: psycopg.Connection, group: GroupDefinition, path: str) -> Found:
    if strangers := sorted(group.settings.keys() - {"isolation"}):
        raise InvalidArgument(f"A refresh group has no {strangers[0]!r}.", "It has members and isolation.")
    isolation = str(group.settings.get("isolation", "repeatable_read")).lower()
    return {"members": _named(connection, group.members, path), "isolation": isolation}


def _changes(
    kind: str, project: Project, now: Mapping[str, Found], wanted: Mapping[str, Found], anew: frozenset[str]
) -> tuple[Change, ...]:
    changes = []
    groups = project.watermark_groups if kind == WATERMARK_GROUP else project.refresh_groups
    for group in groups:
        known = now.get(group.name)
        if known is None:
            changes.append(Change("create", kind, group.name, step=group))
            continue
        if known["project"] not in {None, project.name}:
            raise CatalogError(f"The {kind} {group.name} belongs to the project {known['project']}.")
        if details := _details(known, wanted[group.name], anew):
            changes.append(Change("alter", kind, group.name, details, step=group))
    gone = [name for name, each in now.items() if each["project"] == project.name and name not in wanted]
    _refuse_members({name: now[name] for name in now.keys() - wanted.keys() - set(gone)}, kind, anew)
    return (*changes, *(Change("drop", kind, name) for name in gone))


def _details(now: Found, wanted: Found, anew: frozenset[str]) -> tuple[str, ...]:
    found = tuple(_difference(name, now[name], value) for name, value in wanted.items() if not _same(now[name], value))
    return found + tuple(f"{name} is created anew" for name in sorted(anew.intersection(now["members"])))


def _refuse_members(others: Mapping[str, Found], kind: str, anew: frozenset[str]) -> None:
    """Refuse to drop, even for a moment, what is in a group that the project does not define."""
    for name, group in others.items():
        if found := sorted(anew.intersection(group["members"])):
            raise CatalogError(
                f"{found[0]} has to be created anew, and is in the {kind} {name}, which the project does not define.",
                "Define that group in the project too.",
            )


def _same(now: Any, wanted: Any) -> bool:
    return sorted(now) == sorted(wanted) if isinstance(wanted, list) else bool(now == wanted)


def _difference(name: str, now: Any, wanted: Any) -> str:
    shown = [", ".join(map(str, each)) if isinstance(each, list) else each or "default" for each in (now, wanted)]
    return f"{name}: {shown[0]} → {shown[1]}"


def _named(connection: psycopg.Connection, names: Iterable[str], path: str) -> list[str]:
    found = []
    for name in names:
        with translate_errors():
            row = connection.execute(NAMED, (name, path)).fetchone()
        if row is None or row[0] is None:
            raise InvalidArgument(f"There is no table {name}, which a group names.")
        found.append(str(row[0]))
    return found


def _written(connection: psycopg.Connection, name: str, value: Any) -> str | None:
    if value is None or TYPES.get(name) != "interval":
        return None if value is None else str(value)
    with translate_errors():
        row = connection.execute(AS_INTERVAL, (str(value),)).fetchone()
    return str(row[0]) if row else None
