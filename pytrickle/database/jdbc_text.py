"""SQL text for PostgreSQL's JDBC driver, which takes a question mark for a parameter unless it is doubled.

Spark also asks for the columns of a query in a session without the settings of ours: there a role's default may let a
backslash within a string begin an escape.
"""

import re
from functools import cache

# What the driver skips, as PostgreSQL reads it: strings, with backslashes where E stands before them, quoted names,
# comments and dollar quotes. No quote begins within an identifier, which may contain $ and end with E.
_LETTER = r"\w\x80-\U0010ffff"
_APART = rf"(?<![${_LETTER}])"
_TOKEN = rf"""{_APART}E'(?:[^'\\]|\\.|'')*'
    | '(?:[^']|'')*'
    | "[^"]*"
    | --[^\r\n]*
    | /\*
    | {_APART}\$((?!\d)[{_LETTER}]*)\$.*?\$\1\$
    | \?"""
_COMMENT = re.compile(r"/\*|\*/")


def jdbc_text(query: str) -> str:
    r"""Double each question mark that is an operator or a part of one; write each backslash so that it always is one.

    >>> jdbc_text("SELECT j ? 'a?', j @? '$.a ? (@ > 1)', j ?| $$?$$::text[] /* ? */ AS \"?\" FROM t")
    'SELECT j ?? \'a?\', j @?? \'$.a ? (@ > 1)\', j ??| $$?$$::text[] /* ? */ AS "?" FROM t'
    >>> print(jdbc_text(r"SELECT 'a\' || date'\'"))
    SELECT E'a\\' || date E'\\'
    """
    written, done = [], 0
    while found := _token().search(query, done):
        end = _end_of_comment(query, found.end()) if found[0] == "/*" else found.end()
        written += [query[done : found.start()], _piece(query, found.start(), end)]
        done = end
    return "".join([*written, query[done:]])


@cache  # Not at import: compiling it takes longer than importing the rest of this package.
def _token() -> re.Pattern[str]:
    return re.compile(_TOKEN, re.DOTALL | re.IGNORECASE | re.VERBOSE)


@cache
def _in_word() -> re.Pattern[str]:
    return re.compile(rf"[${_LETTER}]")


def _piece(query: str, start: int, end: int) -> str:
    piece, before = query[start:end], query[max(0, start - 2) : start]
    # In a string that U& begins a backslash is an escape anyway.
    if piece[0] == "'" and "\\" in piece and before.upper() != "U&":
        return (" E" if _in_word().fullmatch(before[-1:]) else "E") + piece.replace("\\", "\\\\")
    return "??" if piece == "?" else piece


def _end_of_comment(query: str, start: int) -> int:
    """Find where a comment ends, which may contain comments."""
    depth, at = 1, start
    while depth and (found := _COMMENT.search(query, at)):
        depth += 1 if found[0] == "/*" else -1
        at = found.end()
    return len(query) if depth else at
