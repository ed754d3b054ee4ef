"""How the plan of a project looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

SIGNS = {"create": "+", "drop": "-", "alter": "~", "rename": "~", "replace": "±"}


def planned(plan: Mapping[str, Any]) -> str:
    """Show what would be done."""
    return _told(plan, "to be changed")


def applied(plan: Mapping[str, Any]) -> str:
    """Show what was done."""
    return _told(plan, "changed")


def _told(plan: Mapping[str, Any], said: str) -> str:
    changes = plan["changes"]
    if not changes:
        return f"The database follows the project {plan['project']}."
    return "\n".join([*(line for change in changes for line in _lines(change)), f"{len(changes)} {said}."])


def _lines(change: Mapping[str, Any]) -> Iterator[str]:
    yield f"{SIGNS[change['action']]} {change['action']} {change['kind']} {change['name']}"
    yield from (f"    {detail}" for detail in change["details"])
    if change["rebuilt"] and change["action"] != "create":
        yield f"    computed anew: {change['rebuilt']}"
