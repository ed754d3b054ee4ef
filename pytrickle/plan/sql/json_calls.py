"""The SQL/JSON constructors of PostgreSQL 16 and newer: what is an expression in their parentheses.

PostgreSQL prints expressions first, each perhaps with FORMAT JSON, then clauses that hold none.
"""

import re
from collections.abc import Iterator

from pytrickle.errors import NotDifferentiable

NAMES = ("JSON_OBJECT", "JSON_ARRAY", "JSON_SERIALIZE")
# Of a row without a value that follows one with an error PostgreSQL 18 shows what is to be shown of the error, so that
# the answer depends on the order of the rows.
QUERIES = re.compile(r"JSON_(?:VALUE|QUERY|EXISTS|TABLE)\(")
# One of these begins the clauses. So does NULL before ON.
CLAUSES = frozenset({"RETURNING", "ABSENT", "WITH", "WITHOUT"})
# What is no part of an expression, beside commas and colons.
WORDS = frozenset({"FORMAT", "JSON"})


def refuse_json_query(piece: str) -> None:
    """Refuse a query function, by the piece of a text that it begins with."""
    if QUERIES.fullmatch(piece):
        raise NotDifferentiable(f"{piece[:-1]}, whose answer may depend on the row that was read before")


def parts_of(pieces: list[str]) -> list[list[str]]:
    """Part the pieces in the parentheses: expressions, and what is between them, in turns.

    >>> ["".join(part) for part in parts_of(["'a'", " ", ":", " ", "t.x", " ", "RETURNING", " ", "jsonb"])]
    ["'a' ", ':', ' t.x ', 'RETURNING jsonb']
    """
    found: list[list[str]] = [[]]
    for piece, is_between in _told_apart(pieces):
        if is_between != (len(found) % 2 == 0):
            found.append([])
        found[-1].append(piece)
    return found


def _told_apart(pieces: list[str]) -> Iterator[tuple[str, bool]]:
    """Say of each piece whether it belongs to no expression."""
    depth, clauses = 0, False
    for place, piece in enumerate(pieces):
        ahead = "".join(pieces[place + 1 : place + 3])
        if depth == 0:
            clauses = clauses or piece in CLAUSES or (piece == "NULL" and ahead == " ON")
        # The colons of a cast have no spaces around them.
        colon = piece == ":" and ahead[:1].isspace() and pieces[place - 1].isspace()
        yield piece, clauses or (depth == 0 and (colon or piece == "," or piece in WORDS))
        depth += piece.endswith(("(", "[")) - (piece in {")", "]"})
