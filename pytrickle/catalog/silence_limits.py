"""Limits on the silence of sources, as groups and sources take them in Python and in SQL."""

from collections.abc import Mapping
from datetime import timedelta
from typing import TypedDict

from psycopg import sql

from pytrickle.catalog.source_name import SOURCE
from pytrickle.database import filled, function_call


class Limits(TypedDict, total=False):
    """How long the loader of a source may not be seen; the names and the meanings are those of the SQL functions.

    After `stale_after` the source is stale: `on_stale` is warn (an alert) or hold (it also gates). After `idle_after`
    it is idle, and its groups go on without it.
    """

    stale_after: timedelta | str | None
    on_stale: str
    idle_after: timedelta | str | None


TYPES = {
    "sources": "pg_catalog.text[]",
    "reset": "pg_catalog.text[]",
    "tolerance": "interval",
    "batch_tolerance": "bigint",
    "stale_after": "interval",
    "idle_after": "interval",
}


def call_with_limits(function: str, arguments: Mapping[str, object]) -> tuple[sql.Composed, list[object]]:
    """Return a call of a pgtrickle function with named arguments, and its parameters."""
    named = [filled("{name} => {value}", name=sql.Identifier(name), value=_value(name)) for name in arguments]
    return function_call(function, named), list(arguments.values())


def _value(name: str) -> str:
    return SOURCE if name == "source" else f"%s::{TYPES.get(name, 'pg_catalog.text')}"


def tolerance_of_a_kind(tolerance: timedelta | str | int | None) -> dict[str, object]:
    """Return the argument of a group's tolerance: a number of batches, or the length of a time.

    >>> tolerance_of_a_kind(2), tolerance_of_a_kind("2 minutes")
    ({'batch_tolerance': 2}, {'tolerance': '2 minutes'})
    """
    batches = isinstance(tolerance, int) and not isinstance(tolerance, bool)
    return {"batch_tolerance" if batches else "tolerance": tolerance}
