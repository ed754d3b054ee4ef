"""Output that needs no Rich, which takes as long to load as a small command takes: JSON, and text made harmless."""

from __future__ import annotations

import json
import re
import sys
from typing import Any, TextIO

from pytrickle.cli.values import jsonable

# What moves a terminal's cursor, colours it, or lets it answer: C0 but for tab and line feed, DEL and C1; and what
# turns the direction of text around.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Return a text with its control characters spelled out: names and values are anybody's, and reach a terminal.

    >>> visible("orders\\x1b[2J")
    'orders\\\\u001b[2J'
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def show_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a result as one JSON document on stdout."""
    sys.stdout.write(_document(value, indent, sys.stdout) + "\n")
    sys.stdout.flush()


def show_json_error(message: str, hint: str | None, kind: str, sqlstate: str | None) -> None:
    """Print an error as one JSON document on stderr."""
    document = {"error": message, "hint": hint, "type": kind, "sqlstate": sqlstate}
    sys.stderr.write(_document(document, None, sys.stderr) + "\n")


def _document(value: Any, indent: int | None, stream: TextIO) -> str:
    """Return a JSON document, with escapes in the place of letters that the encoding of a stream lacks."""
    text = visible(json.dumps(jsonable(value), indent=indent, ensure_ascii=False))
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(jsonable(value), indent=indent)
    return text
