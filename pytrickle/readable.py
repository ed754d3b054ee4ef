"""How values look where they are looked at: short in a Python prompt, as tables in a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, Field, fields
from datetime import date, timedelta
from html import escape
from typing import Any, TypeVar

Row = TypeVar("Row", covariant=True)

SEPARATOR = ",\n "
_CELL = "text-align:left;white-space:pre-wrap"


def counted(number: int, noun: str) -> str:
    """Write how many there are of something.

    >>> counted(1, "changed row"), counted(2, "changed row"), counted(0, "change")
    ('1 changed row', '2 changed rows', '0 changes')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def ended(text: str) -> str:
    """Return a sentence with a full stop, which the words of PostgreSQL lack, so that another may follow.

    >>> ended("the database system is shutting down"), ended("Is the server running?")
    ('the database system is shutting down.', 'Is the server running?')
    """
    return text if text.endswith((".", "!", "?")) else f"{text}."


class Readable:
    """A dataclass whose representation leaves out what is not set, and which a notebook shows as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_literal(value)}" for name, value in _told(self))
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a line per field, and a table for each field that holds rows."""
        told = _told(self)
        tables = [(name, value) for name, value in told if isinstance(value, Rows)]
        lines = [f"<tr><th style='{_CELL}'>{escape(name)}</th>{_cell(value)}</tr>" for name, value in told]
        plain = "".join(line for line, (_, value) in zip(lines, told, strict=True) if not isinstance(value, Rows))
        nested = "".join(f"<h4>{escape(name)}</h4>{rows._repr_html_()}" for name, rows in tables)
        return f"<table>{plain}</table>{nested}"


class Rows(tuple[Row, ...]):
    """A tuple of dataclasses that has one line for each, and which a notebook shows as a table.

    >>> Rows([1, 2])
    (1,
     2)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"({SEPARATOR.join(map(repr, self))}{',' if len(self) == 1 else ''})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a column for each field that is set in some row."""
        if not self:
            return "<p>no rows</p>"
        first: Any = self[0]
        told = [dict(_told(row)) for row in self]
        names = [field.name for field in fields(first) if any(field.name in row for row in told)]
        return html_table(names, ([row.get(name) for name in names] for row in told))


def html_table(names: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table with these headings and rows, all of it escaped."""
    head = "".join(f"<th style='{_CELL}'>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _told(value: Any) -> list[tuple[str, Any]]:
    """Return the fields that say something: those without a default, unless they are None, and those not at theirs."""
    found = ((field, getattr(value, field.name)) for field in fields(value) if field.repr)
    return [(field.name, told) for field, told in found if told is not None and not _is_default(field, told)]


def _is_default(field: Field[Any], value: object) -> bool:
    return field.default is not MISSING and field.default == value


def _literal(value: object) -> str:
    """Return a value as a prompt shows it; moments and durations as they are said, not as they are constructed."""
    return str(value) if isinstance(value, date | timedelta) else repr(value)


def _cell(value: object) -> str:
    shown = "" if value is None else ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"<td style='{_CELL}'>{escape(shown)}</td>"
