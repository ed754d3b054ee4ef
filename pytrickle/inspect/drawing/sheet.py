"""A picture laid out on a sheet: the sizes of its boxes by their texts, and where everything goes, in pixels."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from pytrickle.inspect.drawing.layers import reading
from pytrickle.inspect.drawing.layout import Layout, layout
from pytrickle.inspect.drawing.picture import Band, Box, Picture, Tone, shortened

LETTER, LINE, PADDING, MARGIN = 7.3, 17.0, 10.0, 24.0
LONGEST = 48
COLOURS = {
    Tone.PLAIN: ("#f6f8fa", "#6e7781"),
    Tone.GOOD: ("#dafbe1", "#1a7f37"),
    Tone.NEW: ("#ddf4ff", "#0969da"),
    Tone.WAITING: ("#fff8c5", "#9a6700"),
    Tone.BAD: ("#ffebe9", "#cf222e"),
}


@dataclass(frozen=True, slots=True)
class Sheet:
    """The size of a drawing, the distance from its top to the graph, and the places within the graph."""

    width: float
    height: float
    top: float
    places: Layout


def sheet(picture: Picture) -> Sheet:
    """Lay a picture out: the groups and the caption above, then the graph."""
    places = layout(reading(picture), {box.name: _size(box) for box in picture.boxes})
    top = MARGIN + LINE * (len(picture.bands) + 1)
    wide = max(cell_len(text) * LETTER for text in (*map(said, picture.bands), picture.caption))
    return Sheet(max(places.size[0], wide) + 2 * MARGIN, places.size[1] + top + MARGIN, top, places)


def said(band: Band) -> str:
    """Return the line of a group."""
    return shortened(f"● {band.name}: {band.state}", LONGEST)


def lines(box: Box) -> tuple[str, ...]:
    """Return the lines of a box, its name first."""
    groups = (f"in {', '.join(box.groups)}",) if box.groups else ()
    state = (box.state,) if box.state else ()
    return tuple(shortened(line, LONGEST) for line in (box.name, *state, *box.lines, *groups))


def _size(box: Box) -> tuple[float, float]:
    texts = lines(box)
    return max(map(cell_len, texts)) * LETTER + 2 * PADDING, len(texts) * LINE + 2 * PADDING
