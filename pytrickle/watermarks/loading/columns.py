"""Where a row has its event time, and its partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytrickle.errors import InvalidArgument

Column = str | int | Callable[[Any], Any]
"""A key of the row, a position in it, or a function of it; of frames the name of a column."""


def reader(name: str, column: Column | None) -> Callable[[Any], Any]:
    """Return what reads a column from a row; raise InvalidArgument if the argument of this name is not given."""
    match column:
        case None:
            raise InvalidArgument(f"{name} is not given.", f"load(…, {name}='…'), a key of the rows, or a position.")
        case str() | int() as key:
            return lambda row: row[key]
        case read:
            return read
