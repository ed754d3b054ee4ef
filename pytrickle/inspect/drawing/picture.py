"""What is drawn: boxes, each reading others, with what is said about them; and the groups that boxes are in."""

from dataclasses import dataclass
from enum import StrEnum

from rich.cells import cell_len, set_cell_size

ELLIPSIS = "…"
UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"


class Tone(StrEnum):
    """What a colour is to say."""

    PLAIN = "plain"
    GOOD = "good"
    NEW = "new"
    WAITING = "waiting"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Box:
    """A relation. `state` is one word, empty for a source; `lines` are short facts, `note` is a sentence."""

    name: str
    state: str = ""
    tone: Tone = Tone.PLAIN
    lines: tuple[str, ...] = ()
    note: str | None = None
    reads: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Band:
    """A watermark group: its name, its state in one word, and a sentence about it."""

    name: str
    state: str
    tone: Tone = Tone.PLAIN
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """A whole graph. `caption` says of when it is; where there are no boxes it is all that is drawn."""

    boxes: tuple[Box, ...]
    bands: tuple[Band, ...] = ()
    caption: str = ""


def printable(text: str) -> str:
    """Replace what a terminal would obey or XML forbids, such as escape codes and marks that reverse the direction.

    >>> printable("a\\x1b[31mb\\n")
    'a�[31mb�'
    """
    return "".join(letter if letter.isprintable() else UNPRINTABLE for letter in text)


def shortened(text: str, cells: int) -> str:
    """Cut a text to a width in terminal cells, of which a wide letter takes two.

    >>> shortened("abcdef", 4), shortened("abcd", 4)
    ('abc…', 'abcd')
    """
    return text if cell_len(text) <= cells else set_cell_size(text, cells - 1).rstrip() + ELLIPSIS
