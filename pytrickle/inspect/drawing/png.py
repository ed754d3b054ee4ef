"""A picture as a PNG file, drawn by matplotlib with the fonts that it brings along."""

from __future__ import annotations

import io
import warnings
from itertools import pairwise
from typing import TYPE_CHECKING

from pytrickle.errors import PackageMissing
from pytrickle.inspect.drawing.layout import Frame, Point
from pytrickle.inspect.drawing.picture import Box, Picture, printable
from pytrickle.inspect.drawing.sheet import COLOURS, LINE, MARGIN, PADDING, lines, said, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREY, BLACK = "#57606a", "#1f2328"
SIZE = 8.6


def png(picture: Picture) -> bytes:
    """Return the bytes of a PNG at twice the size of the SVG; raise PackageMissing where matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        hint = "Install it: pip install 'pytrickle-postgres[plot]'. SVG needs nothing."
        raise PackageMissing("Drawing a PNG needs matplotlib.", hint) from error
    laid = sheet(picture)
    width, height = round(laid.width), round(laid.height)
    figure = Figure(figsize=(width / 100, height / 100), dpi=200)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    for number, band in enumerate(picture.bands):
        _text(axes, (MARGIN, MARGIN + LINE * number), said(band), COLOURS[band.tone][1])
    _text(axes, (MARGIN, laid.top - LINE), picture.caption, GREY)
    for points in laid.places.arrows.values():
        _arrow(axes, [(x + MARGIN, y + laid.top) for x, y in points])
    for box in picture.boxes:
        _box(axes, box, laid.places.frames[box.name], (MARGIN, laid.top))
    written = io.BytesIO()
    with warnings.catch_warnings():
        # A letter that the font lacks is drawn as a frame.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure.savefig(written, format="png", facecolor="white")
    return written.getvalue()


def _box(axes: Axes, box: Box, frame: Frame, corner: Point) -> None:
    from matplotlib.patches import FancyBboxPatch

    fill, stroke = COLOURS[box.tone]
    left, top = frame.left + corner[0], frame.top + corner[1]
    style = f"round,pad=0,rounding_size={3 if box.state else 14}"
    place = FancyBboxPatch(
        (left, top), frame.width, frame.height, boxstyle=style, facecolor=fill, edgecolor=stroke, linewidth=0.8
    )
    axes.add_patch(place)
    for number, line in enumerate(lines(box)):
        point = (left + PADDING, top + PADDING + LINE * (number + 0.75))
        _text(axes, point, line, GREY if number else BLACK, bold=not number)


def _arrow(axes: Axes, points: list[Point]) -> None:
    """Draw the curves and lines of an arrow as the SVG does."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    steps, codes = [points[0]], [Path.MOVETO]
    for number, ((x, y), (to_x, to_y)) in enumerate(pairwise(points)):
        middle = (x + to_x) / 2
        curved = number % 2 == 0
        steps += [(middle, y), (middle, to_y), (to_x, to_y)] if curved else [(to_x, to_y)]
        codes += [Path.CURVE4] * 3 if curved else [Path.LINETO]
    axes.add_patch(FancyArrowPatch(path=Path(steps, codes), arrowstyle="-|>", mutation_scale=7, color=GREY, lw=0.9))


def _text(axes: Axes, point: Point, text: str, colour: str, *, bold: bool = False) -> None:
    weight = "bold" if bold else "normal"
    # Names are names: a dollar sign begins no formula.
    axes.text(*point, printable(text), color=colour, weight=weight, size=SIZE, family="monospace", parse_math=False)
