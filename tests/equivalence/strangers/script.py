"""Statements of a psql script, without psql's own commands and without the data of COPY."""

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"--[^\n]*"
    r"|/\*.*?\*/"
    r"|[eE]'(?:[^'\\]|\\.|'')*'"
    r"|'(?:[^']|'')*'"
    r'|"(?:[^"]|"")*"'
    r"|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$"
    r"|\\;"
    r"|^\\[^\n]*"
    r"|\\g\w*[^\n]*"
    r"|;"
    r"|\bbegin\s+atomic\b.*?\bend\b"
    r"|.",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_COPY = re.compile(r"\s*copy\b.*\bfrom\s+stdin\b", re.DOTALL | re.IGNORECASE)


def statements(text: str) -> Iterator[str]:
    """Yield one statement after another, without its semicolon and the comments around it.

    >>> list(statements("SELECT ';' AS a; -- why\\n\\\\d t\\nCOPY t FROM stdin;\\n1\\n\\\\.\\nTABLE t \\\\gset"))
    ["SELECT ';' AS a", 'TABLE t']
    """
    position, found = 0, ""
    while position < len(text):
        token = _TOKEN.match(text, position)
        assert token is not None
        position, part = token.end(), token.group()
        if part.startswith(("--", "/*")):
            found += " "
        elif part == ";" or part.startswith("\\"):
            if _COPY.match(found):
                position = _after_data(text, position)
            elif found.strip() and (part == ";" or part.startswith("\\g")):
                yield found.strip()
            found = found if part.startswith("\\") and not part.startswith("\\g") else ""
        else:
            found += part


def _after_data(text: str, position: int) -> int:
    end = re.compile(r"^\\\.[^\n]*\n?", re.MULTILINE).search(text, position)
    return end.end() if end else len(text)
