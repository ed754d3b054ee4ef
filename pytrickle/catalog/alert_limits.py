"""Limits beyond which an alert is raised, as they are set in Python and in SQL."""

from datetime import timedelta
from typing import TypedDict

from psycopg import sql

from pytrickle.database import filled, function_call

TYPES = {"lag": "interval", "late_share": "float8", "rate": "float8", "idle_share": "float8"}


class AlertLimits(TypedDict, total=False):
    """How much is too much: names, meanings and defaults are those of ``pgtrickle.set_alert_limits()``; None: none."""

    lag: timedelta | str | None
    late_share: float | None
    rate: float | None
    idle_share: float | None


def call_with_alert_limits(
    source: str | None, group_name: str | None, limits: AlertLimits
) -> tuple[sql.Composed, list[object]]:
    """Return a call of ``set_alert_limits`` with named arguments, and its parameters."""
    given: dict[str, object] = {"source": source, "group_name": group_name, **limits}
    named = [
        filled("{name} => %s::{type}", name=sql.Identifier(name), type=TYPES.get(name, "pg_catalog.text"))
        for name in given
    ]
    return function_call("set_alert_limits", named), list(given.values())
