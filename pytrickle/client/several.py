"""Lists of names that callers give."""

from __future__ import annotations

from collections.abc import Iterable

from pytrickle.errors import InvalidArgument


def several(argument: str, names: Iterable[str]) -> list[str]:
    """Return names as a list; refuse one text in their place, which Python would take for a list of its letters."""
    if isinstance(names, str):
        raise InvalidArgument(f"{argument} is a list of names, and {names!r} is one text.", f"Give [{names!r}].")
    return list(names)
