"""Text whose lines are longer than a terminal is wide: folded between words, and below where each line began."""

from __future__ import annotations

import re
import sys

from rich.cells import cell_len
from rich.text import Text

from pytrickle.cli.console import console
from pytrickle.cli.values import sentence

_BEFORE_TEXT = re.compile("[ │├└─]*")
_BELOW = str.maketrans("├└─", "│  ")


def for_terminal(text: str) -> str:
    """Fold a text for the terminal that shows it, with moments in its time zone; elsewhere its lines stay whole."""
    if not sys.stdout.isatty():
        return sentence(text)
    return folded(sentence(text), console(sys.stdout).width)


def folded(text: str, width: int) -> str:
    """Fold the lines that are too long, at words; a line that ends a statement is there to be copied, and stays.

    >>> print(folded("└─ join on a.id = b.id, about 100 rows\\n   └─ new a", 30))
    └─ join on a.id = b.id,
         about 100 rows
       └─ new a
    """
    return "\n".join(
        line if cell_len(line) <= width or line.endswith(";") else _line(line, width) for line in text.split("\n")
    )


def _line(line: str, width: int) -> str:
    before = _BEFORE_TEXT.match(line)
    first = before[0] if before else ""
    below = f"{first.translate(_BELOW)}  "
    lines = Text(line[len(first) :]).wrap(console(sys.stdout), max(width - len(below), 20))
    return "\n".join((first if number == 0 else below) + part.plain.rstrip() for number, part in enumerate(lines))
