"""What Spark says of a failure, in one sentence."""

import re

from pytrickle.database.messages import ERROR

DATABASE = re.compile(rf"PSQLException: (?:(?:{'|'.join(ERROR)}): )?(.*\S)")
CAUSE = re.compile(r"^(?:Caused by)?: [\w.$]+: (.*\S)", re.MULTILINE)
FIRST_LINE = re.compile(r"\A\s*(.*\S)")


def sentence_of(message: str) -> str:
    r"""Return what the database said first; else the last cause, which those above it awaited; else the first line.

    >>> sentence_of("An error occurred.\n: a.Failed: awaited\n\tat a.b\nCaused by: a.Failed: no space left\n\tat a.c")
    'no space left'
    >>> sentence_of("It failed: o.PSQLException: ERROR: division by zero\nCaused by: o.PSQLException: ERROR: canceled")
    'division by zero'
    >>> sentence_of("It failed: o.PSQLException: FEHLER: Division durch Null")
    'Division durch Null'
    """
    said, causes, lines = (pattern.findall(message) for pattern in (DATABASE, CAUSE, FIRST_LINE))
    return str([*said[:1], *causes[-1:], *lines, "no message"][0])[:300]
