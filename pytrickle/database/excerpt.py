"""Where in a user's query PostgreSQL found an error."""

from __future__ import annotations

import re

import psycopg

# Who reads a defining query for its error.
_READER = re.compile(r"\bread_query\(text,text")
_WIDTH = 60


def excerpt_of(error: psycopg.Error) -> str | None:
    """Return the line of a defining query that an error is about, with a caret below, as psql shows it.

    None where the error is about no place, or about a statement that is not the user's.
    """
    reader = _READER.search((error.diag.context or "").partition("\n")[0])
    query, position = error.diag.internal_query, error.diag.internal_position
    if reader is None or query is None or position is None:
        return None
    return excerpt(query, int(position) - 1)


def excerpt(query: str, place: int) -> str:
    """Return the line of a query that a place is in, counted from 0, with a caret below it; of a long line a part.

    >>> print(excerpt("SELECT region\\nFORM orders", 14))
    LINE 2: FORM orders
            ^
    """
    # What is missing at the end is noticed beyond it.
    place = min(place, len(query.rstrip()))
    before = query[:place].split("\n")
    number, column = len(before), len(before[-1])
    line = query.split("\n")[number - 1].rstrip().replace("\t", " ")
    first = max(0, column - _WIDTH // 2) if len(line) > _WIDTH else 0
    shown = "..." * (first > 0) + line[first : first + _WIDTH] + "..." * (len(line) > first + _WIDTH)
    label = f"LINE {number}: "
    return f"{label}{shown}\n{' ' * (len(label) + column - first + 3 * (first > 0))}^"
