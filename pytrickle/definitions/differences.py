"""What groups and sources have in common when a project is compared with the database."""

from collections.abc import Iterable, Mapping
from typing import Any

import psycopg

from pytrickle.database import translate_errors
from pytrickle.definitions.values import Change
from pytrickle.errors import CatalogError, InvalidArgument, PytrickleError

NAMED = "SELECT pgtrickle_private.qualified_name(pgtrickle_private.relation_named(%s, %s))"
AS_INTERVAL = "SELECT %s::interval::text"

NOTHING: Mapping[str, tuple[str, ...]] = {}

Found = Mapping[str, Any]


def changes(
    kind: str,
    project: str,
    now: Mapping[str, Found],
    wanted: Mapping[str, tuple[Found, Any]],
    further: Mapping[str, tuple[str, ...]] = NOTHING,
) -> tuple[Change, ...]:
    """Create, alter and drop what a project defines and what it owns, by name.

    Each of `now` says under `project` who owns it, each of `wanted` has what carries it out; `further` details come
    with what is there already. Raises CatalogError for what another project owns.
    """
    found = []
    for name, (each, step) in wanted.items():
        known = now.get(name)
        if known is None:
            found.append(Change("create", kind, name, step=step))
            continue
        if known["project"] not in {None, project}:
            raise CatalogError(f"The {kind} {name} belongs to the project {known['project']}.")
        if details := _details(known, each) + further.get(name, ()):
            found.append(Change("alter", kind, name, details, step=step))
    gone = (name for name, each in now.items() if each["project"] == project and name not in wanted)
    return (*found, *(Change("drop", kind, name) for name in gone))


def named(connection: psycopg.Connection, names: Iterable[str], path: str, what: str) -> list[str]:
    """Return the qualified names of tables; raise InvalidArgument, which says what names it, where there is none."""
    found = []
    for name in names:
        with translate_errors():
            row = connection.execute(NAMED, (name, path)).fetchone()
        if row is None or row[0] is None:
            raise InvalidArgument(f"There is no table {name}, which {what} names.")
        found.append(str(row[0]))
    return found


def written(connection: psycopg.Connection, value: Any, is_interval: bool) -> str | None:
    """Return a setting as the database writes it; raise InvalidArgument for what is no interval."""
    if value is None or not is_interval:
        return None if value is None else str(value)
    try:
        with translate_errors():
            row = connection.execute(AS_INTERVAL, (str(value),)).fetchone()
    except PytrickleError as error:
        if (error.sqlstate or "")[:2] != "22":
            raise
        hint = "Write it like '30 seconds', '5 minutes' or '1 hour 30 minutes'."
        raise InvalidArgument(f"{value!r} is not an interval.", hint) from error
    return str(row[0]) if row else None


def _details(now: Found, wanted: Found) -> tuple[str, ...]:
    return tuple(_difference(name, now[name], value) for name, value in wanted.items() if not _same(now[name], value))


def _same(now: Any, wanted: Any) -> bool:
    return sorted(now) == sorted(wanted) if isinstance(wanted, list) else bool(now == wanted)


def _difference(name: str, now: Any, wanted: Any) -> str:
    shown = [", ".join(map(str, each)) if isinstance(each, list) else each or "default" for each in (now, wanted)]
    return f"{name}: {shown[0]} → {shown[1]}"
