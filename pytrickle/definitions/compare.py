"""What a project differs in from the database, found in a transaction that is rolled back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from pytrickle.database import AGAIN_SAFE, USERS_PATH
from pytrickle.definitions.compare_groups import refresh_group_changes, watermark_group_changes
from pytrickle.definitions.compare_sources import source_changes
from pytrickle.definitions.in_order import blame, in_order
from pytrickle.definitions.values import Change, Plan, Project, StreamTableDefinition
from pytrickle.errors import CatalogError

COMPARE = "SELECT pgtrickle_private.compare_definition(%s, %s, %s, %s, %s)"
KNOWN = """
SELECT t.pgt_id, pgtrickle_private.qualified_name(t.pgt_relid) AS name, t.project,
    ARRAY(SELECT u.pgt_id FROM pgtrickle.pgt_dependencies AS d
          JOIN pgtrickle.pgt_stream_tables AS u ON u.pgt_relid = d.source_relid WHERE d.pgt_id = t.pgt_id) AS reads
FROM pgtrickle.pgt_stream_tables AS t ORDER BY t.pgt_id
"""
EXISTING = "SELECT pgtrickle_private.existing_stream_table(%s, %s)"
AT_CREATION = ("output_mode", "window_end", "fillfactor")
FIRST_LOAD = "it is new"
TABLE = "stream table"


@dataclass(frozen=True, slots=True)
class Known:
    """A stream table of the database: its name, the project that owns it, and the stream tables that it reads."""

    pgt_id: int
    name: str
    project: str | None
    reads: frozenset[int]


@dataclass(frozen=True, slots=True)
class Step:
    """What a change of a stream table needs to be carried out; without a definition it is dropped."""

    pgt_id: int | None
    definition: StreamTableDefinition | None
    search_path: str
    name: str
    origin: str
    query_changed: bool = True
    renamed: bool = False


def compare(connection: psycopg.Connection, project: Project) -> Plan:
    """Return what makes the database follow the project; nothing is left behind, and no source is locked.

    Raises what create_stream_table raises for a query or an option, and CatalogError where another project owns what
    this one defines.
    """
    with connection.transaction(force_rollback=True):
        path = path_of(connection, project)
        rows = connection.execute(KNOWN).fetchall()
        known = {pgt_id: Known(pgt_id, name, owner, frozenset(reads)) for pgt_id, name, owner, reads in rows}
        found = _facts(connection, project, path)
        _refuse_foreign(project.name, found, known)
        steps = [(_step(definition, facts, path), facts) for definition, facts in _sources_first(found)]
        replaced = _replaced(steps, known)
        tables = [change for step, facts in steps if (change := _change(step, facts, replaced))]
        wanted = {step.pgt_id for step, _ in steps}
        dropped = [each for each in known.values() if each.project == project.name and each.pgt_id not in wanted]
        _refuse_reading_dropped(found, frozenset(each.name for each in dropped))
        _refuse_readers(replaced.keys() | {each.pgt_id for each in dropped}, wanted, dropped, known)
        drops = [Change("drop", TABLE, each.name, step=_drop(each, path)) for each in reversed(dropped)]
        anew = frozenset(known[pgt_id].name for pgt_id in replaced)
        groups = watermark_group_changes(connection, project, path, anew)
        refresh_groups = refresh_group_changes(connection, project, path, anew)
        sources = source_changes(connection, project, path, frozenset(step.name for step, _ in steps))
    return Plan(project.name, (*drops, *tables, *sources, *groups, *refresh_groups))


def path_of(connection: psycopg.Connection, project: Project) -> str:
    """Return the search_path of a project: its own, or that of whoever opened the connection."""
    if project.search_path is not None:
        return project.search_path
    connection.execute(USERS_PATH)
    ((path,),) = connection.execute("SELECT pg_catalog.current_setting('search_path')").fetchall()
    connection.execute(AGAIN_SAFE)
    return str(path)


def _facts(
    connection: psycopg.Connection, project: Project, path: str
) -> list[tuple[StreamTableDefinition, dict[str, Any]]]:
    """Compare each definition; one that only reads the new columns of another cannot be, and is written anew."""

    def ask(each: StreamTableDefinition) -> dict[str, Any]:
        search_path = each.search_path or path
        arguments = (each.name, each.query, Jsonb(dict(each.options)), search_path, each.renamed_from)
        ((facts,),) = connection.execute(COMPARE, arguments).fetchall()
        return dict(facts)

    done, failed = in_order(connection, project.stream_tables, ask)
    if failed and not any(facts["pgt_id"] and facts["columns"] != facts["columns_now"] for _, facts in done):
        raise blame(failed)
    for definition, _ in failed:
        row = connection.execute(EXISTING, (definition.name, definition.search_path or path)).fetchone()
        done.append((definition, {"pgt_id": row[0] if row else None, "name": definition.name, "unknown": True}))
    return done


def _sources_first(
    found: list[tuple[StreamTableDefinition, dict[str, Any]]],
) -> list[tuple[StreamTableDefinition, dict[str, Any]]]:
    """Put what is read before what reads it; where they read each other, leave them as they are."""
    numbered = list(enumerate(found))
    places = {facts.get("name_now") or facts["name"]: i for i, (_, facts) in numbered}
    reads = {i: {places[name] for name in facts.get("reads", ()) if name in places} for i, (_, facts) in numbered}
    try:
        return [found[i] for i in TopologicalSorter(reads).static_order()]
    except CycleError:
        return found


def _step(definition: StreamTableDefinition, facts: Mapping[str, Any], path: str) -> Step:
    wanted_path = definition.search_path or path
    moved = facts.get("path") != facts.get("path_now") and definition.search_path is not None
    return Step(
        facts["pgt_id"],
        definition,
        wanted_path,
        facts["name"],
        definition.origin,
        not facts.get("same_query") or moved,
        bool(facts["pgt_id"]) and facts.get("name_now", facts["name"]) != facts["name"],
    )


def _drop(each: Known, path: str) -> Step:
    return Step(each.pgt_id, None, path, each.name, each.name)


def _replaced(steps: list[tuple[Step, dict[str, Any]]], known: Mapping[int, Known]) -> dict[int, str]:
    """Say of each stream table that has to be created anew why: its own columns, or what it reads."""
    why: dict[int, str] = {}
    for step, facts in steps:
        if step.pgt_id is None or facts.get("unknown"):
            continue
        if facts["columns"] != facts["columns_now"]:
            why[step.pgt_id] = f"columns: {facts['columns_now']} → {facts['columns']}"
        elif changed := [name for name in AT_CREATION if facts["options"].get(name) != facts["options_now"].get(name)]:
            why[step.pgt_id] = f"{changed[0]} is chosen at creation"
    grown = True
    while grown:
        readers = {
            each.pgt_id: f"it reads {known[upstream].name}"
            for each in known.values()
            if each.pgt_id not in why
            for upstream in sorted(each.reads & why.keys())
        }
        why |= readers
        grown = bool(readers)
    return why


def _change(step: Step, facts: Mapping[str, Any], replaced: Mapping[int, str]) -> Change | None:
    if step.pgt_id is None:
        return Change("create", TABLE, step.name, rebuilt=FIRST_LOAD, step=step)
    if reason := replaced.get(step.pgt_id):
        return Change("replace", TABLE, step.name, (reason,), "it is created anew", step)
    details = _differences(facts["options_now"], facts["options"])
    rebuilt = None
    if step.query_changed:
        details, rebuilt = ("query", *details), "its query is another one"
    elif facts["options_now"].get("refresh_mode") == "FULL" != facts["options"].get("refresh_mode"):
        rebuilt = "refresh_mode was FULL"
    if step.renamed:
        details = (f"name: {facts['name_now']} → {facts['name']}", *details)
    if not details:
        return None
    action = "rename" if step.renamed and len(details) == 1 else "alter"
    return Change(action, TABLE, step.name, details, rebuilt, step)


def _differences(now: Mapping[str, str], wanted: Mapping[str, str]) -> tuple[str, ...]:
    changed = sorted(name for name in now.keys() | wanted.keys() if now.get(name) != wanted.get(name))
    return tuple(f"{name}: {now.get(name, 'default')} → {wanted.get(name, 'default')}" for name in changed)


def _refuse_foreign(
    project: str, found: Iterable[tuple[StreamTableDefinition, Mapping[str, Any]]], known: Mapping[int, Known]
) -> None:
    for definition, facts in found:
        owner = known[facts["pgt_id"]].project if facts["pgt_id"] else None
        if owner not in {None, project}:
            raise CatalogError(
                f"{definition.origin}: {facts['name']} belongs to the project {owner}.",
                "Define it in one project only, or rename this project.",
            )


def _refuse_reading_dropped(
    found: Iterable[tuple[StreamTableDefinition, Mapping[str, Any]]], dropped: frozenset[str]
) -> None:
    for definition, facts in found:
        if read := sorted(dropped & set(facts.get("reads", ()))):
            raise CatalogError(
                f"{definition.origin}: it reads {read[0]}, which the project does not define any more.",
                "Define that as well, or have the query read something else.",
            )


def _refuse_readers(
    gone: Iterable[int], wanted: set[int | None], dropped: Iterable[Known], known: Mapping[int, Known]
) -> None:
    """Refuse to drop, even for a moment, what others read that this project does not define."""
    going, ours = set(gone), wanted | {each.pgt_id for each in dropped}
    for each in known.values():
        if each.pgt_id not in ours and each.reads & going:
            upstream = known[min(each.reads & going)].name
            raise CatalogError(
                f"{each.name}, which the project does not define, reads {upstream}, which would be dropped.",
                "Define both in the project, or drop the reader first.",
            )
