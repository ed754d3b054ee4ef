"""Where in a defining query PostgreSQL found an error: the line, and a mark below it, as psql shows them."""

from __future__ import annotations

import re

import psycopg

# What is put around a defining query before PostgreSQL parses it.
_AROUND = re.compile(r"(CREATE VIEW pgtrickle_state\.query_\d+ AS )?\(\n")
_WIDTH = 70


def excerpt(diagnostic: psycopg.errors.Diagnostic) -> str | None:
    """Return the line of a defining query that an error is about, with a mark; None where it is about no such query."""
    query, position = diagnostic.internal_query, diagnostic.internal_position
    around = _AROUND.match(query or "")
    if query is None or position is None or around is None:
        return None
    return marked(query[around.end() : query.rindex("\n)")], int(position) - 1 - around.end())


def marked(query: str, at: int) -> str:
    """Write the line of a query in which a character stands, and a mark below that.

    >>> print(marked("SELECT a,\\n  FROM t", 12))
    LINE 2:   FROM t
              ^
    """
    at = max(0, min(at, len(query)))
    begin = query.rfind("\n", 0, at) + 1
    line = query[begin:].partition("\n")[0].replace("\t", " ")
    column = at - begin
    # Of a long line only what is around the mark is shown.
    first = max(0, min(column - _WIDTH // 2, len(line) - _WIDTH))
    head = f"LINE {query.count(chr(10), 0, begin) + 1}: {'...' if first else ''}"
    rest = "..." if first + _WIDTH < len(line) else ""
    return f"{head}{line[first : first + _WIDTH]}{rest}\n{' ' * (len(head) + column - first)}^"
