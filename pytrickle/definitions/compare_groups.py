"""What the groups of a project differ in from those of the database."""

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from pytrickle.catalog.silence_limits import TYPES, tolerance_of_a_kind
from pytrickle.database import translate_errors
from pytrickle.definitions.differences import Found, changes, named, written
from pytrickle.definitions.values import Change, GroupDefinition, Project
from pytrickle.errors import CatalogError, InvalidArgument, PytrickleError

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
CHECK_WATERMARK_GROUP = """
SELECT pgtrickle_private.check_tolerance(g), pgtrickle_private.check_limits(g.stale_after, g.on_stale, g.idle_after),
    pgtrickle_private.group_sources(%s::text[], %s)
FROM jsonb_populate_record(NULL::pgtrickle.pgt_watermark_groups, %s) AS g
"""
CHECK_ISOLATION = "SELECT pgtrickle_private.check_choice('isolation', %s, 'repeatable_read', 'read_committed')"


def watermark_group_changes(
    connection: psycopg.Connection, project: Project, path: str, anew: frozenset[str]
) -> tuple[Change, ...]:
    """Compare the watermark groups of a project, and those that it owns; `anew` are tables to be created anew."""
    now = {
        name: {"project": owner, "members": members, **dict(zip(SETTINGS, settings, strict=True))}
        for name, owner, members, *settings in connection.execute(WATERMARK_GROUPS)
    }
    wanted = {each.name: (_watermark_group(connection, each, path), each) for each in project.watermark_groups}
    return _changes(WATERMARK_GROUP, project, now, wanted, anew)


def refresh_group_changes(
    connection: psycopg.Connection, project: Project, path: str, anew: frozenset[str]
) -> tuple[Change, ...]:
    """Compare the refresh groups of a project, and those that it owns; `anew` are tables to be created anew."""
    now = {
        name: {"project": owner, "members": members, "isolation": isolation}
        for name, owner, members, isolation in connection.execute(REFRESH_GROUPS)
    }
    wanted = {each.name: (_refresh_group(connection, each, path), each) for each in project.refresh_groups}
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
    try:
        settings = {name: written(connection, given.get(name), TYPES.get(name) == "interval") for name in SETTINGS}
    except InvalidArgument as error:
        raise InvalidArgument(f"{group.name}: {error}", error.hint) from error
    members = named(connection, group.members, path, "a group")
    _check(connection, group.name, CHECK_WATERMARK_GROUP, list(group.members), path, Jsonb(settings))
    return {"members": members, **settings}


def _refresh_group(connection: psycopg.Connection, group: GroupDefinition, path: str) -> Found:
    if strangers := sorted(group.settings.keys() - {"isolation"}):
        raise InvalidArgument(f"A refresh group has no {strangers[0]!r}.", "It has members and isolation.")
    isolation = str(group.settings.get("isolation", "repeatable_read")).lower()
    _check(connection, group.name, CHECK_ISOLATION, isolation)
    members = named(connection, group.members, path, "a group")
    if len(set(members)) < max(2, len(members)):
        raise InvalidArgument(f"{group.name} is no refresh group.", "Name two stream tables or more, each once.")
    return {"members": members, "isolation": isolation}


def _check(connection: psycopg.Connection, name: str, query: str, *parameters: object) -> None:
    """Ask the database whether the settings of a group are valid; begin its error with the name of the group."""
    try:
        with translate_errors():
            connection.execute(query.encode(), parameters)
    except PytrickleError as error:
        error.message = f"{name}: {error.message}"
        error.args = (error.message,)
        raise


def _changes(
    kind: str,
    project: Project,
    now: Mapping[str, Found],
    wanted: Mapping[str, tuple[Found, GroupDefinition]],
    anew: frozenset[str],
) -> tuple[Change, ...]:
    foreign = {name: each for name, each in now.items() if name not in wanted and each["project"] != project.name}
    _refuse_members(foreign, kind, anew)
    created_anew = {
        name: tuple(f"{member} is created anew" for member in sorted(anew.intersection(each["members"])))
        for name, each in now.items()
    }
    return changes(kind, project.name, now, wanted, created_anew)


def _refuse_members(others: Mapping[str, Found], kind: str, anew: frozenset[str]) -> None:
    """Refuse to drop, even for a moment, what is in a group that the project does not define."""
    for name, group in others.items():
        if found := sorted(anew.intersection(group["members"])):
            raise CatalogError(
                f"{found[0]} has to be created anew, and is in the {kind} {name}, which the project does not define.",
                "Define that group in the project too.",
            )
