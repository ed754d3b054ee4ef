"""A picture as SVG text: boxes in columns from left to right, with curved arrows between them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from xml.sax.saxutils import escape

from rich.cells import cell_len

from pytrickle.draw.layers import reading
from pytrickle.draw.layout import Frame, Point, layout
from pytrickle.draw.picture import Band, Box, Picture, Tone, printable, shortened

_LETTER, _LINE, _PADDING, _MARGIN = 7.3, 17.0, 10.0, 24.0
_LONGEST = 48
_FILL = {
    Tone.PLAIN: ("#f6f8fa", "#6e7781"),
    Tone.GOOD: ("#dafbe1", "#1a7f37"),
    Tone.NEW: ("#ddf4ff", "#0969da"),
    Tone.WAITING: ("#fff8c5", "#9a6700"),
    Tone.BAD: ("#ffebe9", "#cf222e"),
}
_STYLE = (
    "text { font: 12px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #1f2328; white-space: pre }"
    " .name { font-weight: bold } .small { fill: #57606a } path { fill: none; stroke: #57606a; stroke-width: 1.3 }"
    " #head path { fill: #57606a; stroke: none }"
)
_HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M 0 0 L 8 4 L 0 8 z"/></marker>'
)


def svg(picture: Picture) -> str:
    """Return a whole SVG document; the notes of boxes and groups are tooltips."""
    graph = reading(picture)
    places = layout(graph, {box.name: _size(box) for box in picture.boxes})
    top = _MARGIN + _LINE * (len(picture.bands) + 1)
    wide = max(cell_len(text) * _LETTER for text in (*map(_said, picture.bands), picture.caption))
    width, height = max(places.size[0], wide) + 2 * _MARGIN, places.size[1] + top + _MARGIN
    body = [
        *(_legend(_MARGIN + _LINE * number, band) for number, band in enumerate(picture.bands)),
        _text(_MARGIN, top - _LINE, picture.caption, "small"),
        f'<g transform="translate({_MARGIN:g} {top:g})">',
        *(_arrow(points) for points in places.arrows.values()),
        *(element for box in picture.boxes for element in _box(box, places.frames[box.name])),
        "</g>",
    ]
    return "\n".join([*_opening(width, height), *body, "</svg>"]) + "\n"


def _opening(width: float, height: float) -> Iterator[str]:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>'
    yield "<title>Sources and stream tables</title>"
    yield f"<style>{_STYLE}</style>"
    yield f"<defs>{_HEAD}</defs>"
    yield '<rect width="100%" height="100%" fill="#ffffff"/>'


def _said(band: Band) -> str:
    return shortened(f"● {band.name}: {band.state}", _LONGEST)


def _legend(y: float, band: Band) -> str:
    dot = f'<tspan style="fill: {_FILL[band.tone][1]}">●</tspan>'
    title = f"<title>{_escaped('. '.join(filter(None, (band.name, band.note))))}</title>"
    return f'<text x="{_MARGIN:g}" y="{y:g}">{title}{dot}{_escaped(_said(band)[1:])}</text>'


def _lines(box: Box) -> tuple[str, ...]:
    """Return the lines of a box, its name first."""
    groups = (f"in {', '.join(box.groups)}",) if box.groups else ()
    state = (box.state,) if box.state else ()
    return tuple(shortened(line, _LONGEST) for line in (box.name, *state, *box.lines, *groups))


def _size(box: Box) -> tuple[float, float]:
    lines = _lines(box)
    return max(map(cell_len, lines)) * _LETTER + 2 * _PADDING, len(lines) * _LINE + 2 * _PADDING


def _box(box: Box, frame: Frame) -> Iterator[str]:
    fill, stroke = _FILL[box.tone]
    corner = 3 if box.state else 14
    yield f"<g><title>{_escaped('. '.join(filter(None, (box.name, box.note))))}</title>"
    yield (
        f'<rect x="{frame.left:.1f}" y="{frame.top:.1f}" width="{frame.width:.1f}" height="{frame.height:.1f}"'
        f' rx="{corner}" fill="{fill}" stroke="{stroke}"/>'
    )
    for number, line in enumerate(_lines(box)):
        kind = "small" if number else "name"
        yield _text(frame.left + _PADDING, frame.top + _PADDING + _LINE * (number + 0.75), line, kind)
    yield "</g>"


def _arrow(points: tuple[Point, ...]) -> str:
    """Draw curves through the gaps between columns, and straight lines through the columns that are passed."""
    path = "M {:.1f} {:.1f}".format(*points[0])
    for number, ((x, y), (to_x, to_y)) in enumerate(pairwise(points)):
        middle = (x + to_x) / 2
        curve = f" C {middle:.1f} {y:.1f} {middle:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
        path += curve if number % 2 == 0 else f" L {to_x:.1f} {to_y:.1f}"
    return f'<path d="{path}" marker-end="url(#head)"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    return escape(printable(text))
