"""A picture as a Mermaid flowchart, which Markdown viewers draw."""

from __future__ import annotations

from collections.abc import Iterator

from pytrickle.inspect.drawing.picture import Band, Box, Picture, Tone, printable

_CLASSES = {
    Tone.PLAIN: "fill:#f6f8fa,stroke:#6e7781,color:#1f2328",
    Tone.GOOD: "fill:#dafbe1,stroke:#1a7f37,color:#1f2328",
    Tone.NEW: "fill:#ddf4ff,stroke:#0969da,color:#1f2328",
    Tone.WAITING: "fill:#fff8c5,stroke:#9a6700,color:#1f2328",
    Tone.BAD: "fill:#ffebe9,stroke:#cf222e,color:#1f2328",
}
# All else that is not a letter or digit could mean something to Mermaid, or to the HTML it makes.
_HARMLESS = frozenset(" .,:_-·/+…")


def mermaid(picture: Picture) -> str:
    """Return the text of a flowchart: tables as cylinders, stream tables as boxes, groups tied to their members."""
    return "\n".join(_lines(picture)) + "\n"


def _lines(picture: Picture) -> Iterator[str]:
    yield "flowchart LR"
    if not picture.boxes:
        yield f"    empty[{_label(picture.caption)}]"
        return
    yield f"    %% {_escaped(picture.caption)}"
    boxes = {box.name: f"n{number}" for number, box in enumerate(picture.boxes)}
    bands = {band.name: f"g{number}" for number, band in enumerate(picture.bands)}
    for box in picture.boxes:
        yield f"    {boxes[box.name]}{_shape(box)}:::{box.tone}"
    for band in picture.bands:
        yield f"    {bands[band.name]}{_hexagon(band)}:::{band.tone}"
    for box in picture.boxes:
        yield from (f"    {boxes[source]} --> {boxes[box.name]}" for source in box.reads if source in boxes)
        yield from (f"    {bands[group]} -.- {boxes[box.name]}" for group in box.groups if group in bands)
    used = {box.tone for box in picture.boxes} | {band.tone for band in picture.bands}
    yield from (f"    classDef {tone} {style}" for tone, style in _CLASSES.items() if tone in used)


def _shape(box: Box) -> str:
    head = f"{box.name}: {box.state}" if box.state else box.name
    label = _label(head, *box.lines)
    return f"[{label}]" if box.state else f"[({label})]"


def _hexagon(band: Band) -> str:
    return f"{{{{{_label(f'{band.name}: {band.state}')}}}}}"


def _label(*lines: str) -> str:
    return f'"{"<br/>".join(map(_escaped, lines))}"'


def _escaped(text: str) -> str:
    """Write punctuation as Mermaid's numbered entities.

    >>> _escaped('a "b" <c> #1;')
    'a #34;b#34; #60;c#62; #35;1#59;'
    """
    return "".join(
        letter if letter.isalnum() or letter in _HARMLESS else f"#{ord(letter)};" for letter in printable(text)
    )
