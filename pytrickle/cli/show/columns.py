"""Tables on a screen: columns without lines, which never break a word and which a pipe gets in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from pytrickle.cli.documents import visible
from pytrickle.cli.values import sentence

Cell = Text | str | None
GAP = "  "
# A sentence beside the other columns is read with pleasure down to this width, and below it stands beneath them.
_NARROWEST = 32
_INDENT = 4


@dataclass(slots=True)
class Columns:
    """Rows under headings, laid out for the width of the screen they are printed on.

    `sentences` are columns that hold prose: they are wrapped between words, beside the others or beneath their row.
    Where the rest is too wide, the columns in `spare` are left out in their order, and the reader is told; where it
    still is, each row becomes a list. A pipe is wide enough for everything.
    """

    names: tuple[str, ...]
    sentences: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    rows: list[dict[str, Text]] = field(default_factory=list)

    def add_row(self, *cells: Cell) -> None:
        """Add a row: a cell for each column, None for an empty one. Moments in a sentence have the tables' form."""
        row = dict(zip(self.names, cells, strict=True))
        prose = {name: sentence(cell) for name in self.sentences if isinstance(cell := row[name], str)}
        self.rows.append({name: _text(cell) for name, cell in (row | prose).items()})

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the widest form for which there is room."""
        for line in self.lines(options.max_width):
            line.no_wrap, line.overflow = True, "ignore"
            yield line

    def lines(self, room: int) -> Iterator[Text]:
        """Return the lines of the table on a screen of `room` columns."""
        table = [name for name in self.names if name not in self.sentences]
        if self._width(self.names) <= room:
            yield from self._table(self.names)
        elif len(self.sentences) == 1 and self._width(table) + len(GAP) + self._narrowest() <= room:
            yield from self._table(table, room)
        elif (kept := self._affordable(table, room)) is not None:
            yield from self._table(kept, room, beneath=True)
            if left_out := [name for name in table if name not in kept]:
                yield Text(f"Not shown for want of room: {', '.join(left_out)}.", style="dim")
        else:
            yield from self._lists(room)

    def fitting(self, room: int) -> list[str]:
        """Return the columns for which there is room; those in `spare` are left out in their order."""
        kept = list(self.names)
        for name in self.spare:
            if self._width(kept) <= room:
                break
            kept.remove(name)
        return kept

    def rows_of(self, names: Sequence[str]) -> Iterator[Text]:
        """Return the heading and a line for each row, of these columns alone."""
        return self._table(names)

    def _width(self, names: Sequence[str]) -> int:
        return sum(map(self._column_width, names)) + len(GAP) * (len(names) - 1)

    def _column_width(self, name: str) -> int:
        return max(cell_len(name), *(row[name].cell_len for row in self.rows), 0)

    def _narrowest(self) -> int:
        """Return what the sentence needs beside the other columns."""
        return max(_NARROWEST, *(_longest_word(row[self.sentences[0]]) for row in self.rows), 0)

    def _affordable(self, names: Sequence[str], room: int) -> list[str] | None:
        """Return the columns that fit beside each other, the most important ones; None if not even those do."""
        kept = list(names)
        spare = iter(self.spare)
        while self._width(kept) > room:
            name = next(spare, None)
            if name is None:
                return None
            kept.remove(name)
        return kept

    def _table(self, names: Sequence[str], room: int = 0, beneath: bool = False) -> Iterator[Text]:
        """Draw some columns; with `room`, the sentences too: wrapped beside them, or `beneath` each row."""
        beside = self.sentences if room and not beneath else ()
        widths = [*map(self._column_width, names)]
        yield _line([Text(name, style="dim") for name in (*names, *beside)], widths)
        indent = sum(widths) + len(GAP) * len(widths)
        for row in self.rows:
            line = _line([row[name] for name in names], widths)
            if beside:
                first, *further = wrapped(row[beside[0]], room - indent) or [Text()]
                line = _line([row[name] for name in names] + [first], widths)
                yield from (line, *(Text(" " * indent).append_text(text) for text in further))
            else:
                yield line
            if beneath:
                yield from self._beneath(row, room)

    def _beneath(self, row: dict[str, Text], room: int) -> Iterator[Text]:
        for name in self.sentences:
            label = f"{name}: " if len(self.sentences) > 1 and row[name].plain else ""
            text = Text(label, style="dim").append_text(row[name])
            yield from (Text(" " * _INDENT).append_text(line) for line in wrapped(text, room - _INDENT))

    def _lists(self, room: int) -> Iterator[Text]:
        """Draw each row as a list of what it holds, below its first cell."""
        first, *others = self.names
        width = max(map(cell_len, others), default=0)
        for row in self.rows:
            yield row[first].copy()
            for name in (name for name in others if row[name].plain):
                label = Text(" " * _INDENT).append(name.ljust(width) + GAP, style="dim")
                indent = label.cell_len
                if indent + _longest_word(row[name]) > room:
                    yield Text(" " * _INDENT).append(name, style="dim")
                    label, indent = Text(" " * 2 * _INDENT), 2 * _INDENT
                head, *tail = wrapped(row[name], room - indent)
                yield label.append_text(head)
                yield from (Text(" " * indent).append_text(line) for line in tail)


def columns(*names: str, sentences: tuple[str, ...] = (), spare: tuple[str, ...] = ()) -> Columns:
    """Return an empty table with these columns."""
    return Columns(names, sentences, spare)


def _text(cell: Cell) -> Text:
    """Return a cell as one line: what it holds may be anybody's, and have line breaks of its own."""
    text = cell if isinstance(cell, Text) else Text(cell or "")
    return Text(visible(" ".join(text.plain.split("\n"))).rstrip(), style=text.style)


def _line(cells: Sequence[Text], widths: Sequence[int]) -> Text:
    """Put cells beside each other; what comes after the last one that says something is left out."""
    line = Text()
    for i, cell in enumerate(cells):
        line.append_text(cell)
        if any(following.plain for following in cells[i + 1 :]):
            line.append(" " * (widths[i] - cell.cell_len) + GAP)
    return line


def _longest_word(text: Text) -> int:
    return max(map(cell_len, text.plain.split()), default=0)


def wrapped(text: Text, room: int) -> list[Text]:
    """Wrap a text between its words; a word that is longer than the room has a line of its own, whole."""
    lines: list[Text] = []
    for word in text.split(" "):
        if lines and lines[-1].cell_len + 1 + word.cell_len <= room:
            lines[-1].append(" ").append_text(word)
        elif word.plain:
            lines.append(word)
    return lines
