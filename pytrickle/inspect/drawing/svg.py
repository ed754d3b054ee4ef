"""A picture as SVG text: boxes in columns from left to right, with curved arrows between them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from xml.sax.saxutils import escape

from pytrickle.inspect.drawing.layout import Frame, Point
from pytrickle.inspect.drawing.picture import Band, Box, Picture, printable
from pytrickle.inspect.drawing.sheet import COLOURS, LINE, MARGIN, PADDING, lines, said, sheet

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
    laid = sheet(picture)
    places, top = laid.places, laid.top
    body = [
        *(_legend(MARGIN + LINE * number, band) for number, band in enumerate(picture.bands)),
        _text(MARGIN, top - LINE, picture.caption, "small"),
        f'<g transform="translate({MARGIN:g} {top:g})">',
        *(_arrow(points) for points in places.arrows.values()),
        *(element for box in picture.boxes for element in _box(box, places.frames[box.name])),
        "</g>",
    ]
    return "\n".join([*_opening(laid.width, laid.height), *body, "</svg>"]) + "\n"


def _opening(width: float, height: float) -> Iterator[str]:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>'
    yield "<title>Sources and stream tables</title>"
    yield f"<style>{_STYLE}</style>"
    yield f"<defs>{_HEAD}</defs>"
    yield '<rect width="100%" height="100%" fill="#ffffff"/>'


def _legend(y: float, band: Band) -> str:
    dot = f'<tspan style="fill: {COLOURS[band.tone][1]}">●</tspan>'
    title = f"<title>{_escaped('. '.join(filter(None, (band.name, band.note))))}</title>"
    return f'<text x="{MARGIN:g}" y="{y:g}">{title}{dot}{_escaped(said(band)[1:])}</text>'


def _box(box: Box, frame: Frame) -> Iterator[str]:
    fill, stroke = COLOURS[box.tone]
    corner = 3 if box.state else 14
    yield f"<g><title>{_escaped('. '.join(filter(None, (box.name, box.note))))}</title>"
    yield (
        f'<rect x="{frame.left:.1f}" y="{frame.top:.1f}" width="{frame.width:.1f}" height="{frame.height:.1f}"'
        f' rx="{corner}" fill="{fill}" stroke="{stroke}"/>'
    )
    for number, line in enumerate(lines(box)):
        kind = "small" if number else "name"
        yield _text(frame.left + PADDING, frame.top + PADDING + LINE * (number + 0.75), line, kind)
    yield "</g>"


def curve(points: tuple[Point, ...]) -> str:
    """Return a path of curves through the gaps between columns, and straight lines through those that are passed."""
    path = "M {:.1f} {:.1f}".format(*points[0])
    for number, ((x, y), (to_x, to_y)) in enumerate(pairwise(points)):
        middle = (x + to_x) / 2
        bent = f" C {middle:.1f} {y:.1f} {middle:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
        path += bent if number % 2 == 0 else f" L {to_x:.1f} {to_y:.1f}"
    return path


def _arrow(points: tuple[Point, ...]) -> str:
    return f'<path d="{curve(points)}" marker-end="url(#head)"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    return escape(printable(text))
