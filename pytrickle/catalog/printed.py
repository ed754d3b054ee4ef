"""Queries as PostgreSQL prints them, with other names for some of the functions that they call."""

import re
from collections.abc import Mapping

_NAME = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_PIECE = re.compile(rf"""(?<![\w$])E'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|{_NAME}(?:\.{_NAME})*""", re.DOTALL)


def calling(text: str, names: Mapping[str, str]) -> str:
    """Have a printed query call functions by other names, each written as PostgreSQL does, with its schema.

    >>> calling("SELECT shop.f(x.f), 'shop.f(', shop.f FROM shop.f(1) AS f", {"shop.f": "w"})
    "SELECT w(x.f), 'shop.f(', shop.f FROM w(1) AS f"
    """

    def named(piece: re.Match[str]) -> str:
        called = text.startswith("(", piece.end())
        return names.get(piece[0], piece[0]) if called else piece[0]

    return _PIECE.sub(named, text) if names else text
