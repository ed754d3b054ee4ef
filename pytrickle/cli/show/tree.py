"""A picture on a terminal: a tree from the sources down, in which each relation is described once."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from pytrickle.inspect.drawing.layers import hanging, reading
from pytrickle.inspect.drawing.picture import Band, Box, Picture, Tone, printable

_FACTS = 56
_STYLES = {
    Tone.PLAIN: "",
    Tone.GOOD: "green",
    Tone.NEW: "cyan",
    Tone.WAITING: "yellow",
    Tone.BAD: "red",
}


def tree(picture: Picture) -> RenderableType:
    """Draw the groups, then a tree: each relation below one that it reads, and named below the others."""
    if not picture.boxes:
        return picture.caption
    return Group(*map(_band, picture.bands), *_trees(picture), Text(picture.caption, style="dim"))


def _trees(picture: Picture) -> list[Tree]:
    boxes = {box.name: box for box in picture.boxes}
    graph = reading(picture)
    above = hanging(graph)
    drawn: dict[str, Tree] = {}
    for name, parent in above.items():
        label = _label(boxes[name], parent)
        drawn[name] = Tree(label, guide_style="dim") if parent is None else drawn[parent].add(label)
    for name, parent in above.items():
        for source in sorted(set(graph.predecessors(name)) - {parent}):
            pointer = f"{name} (described {f'below {parent}' if parent else 'by itself'})"
            drawn[source].add(Text(printable(pointer), style="dim"))
    return [drawn[name] for name, parent in above.items() if parent is None]


def _label(box: Box, parent: str | None) -> Text:
    """Write the name and the state in one line, and what is known in further ones."""
    others = ", ".join(source for source in box.reads if source != parent)
    groups = ", ".join(box.groups)
    facts = _packed(box.lines)
    facts += filter(None, (groups and f"in {groups}", others and f"also reads {others}", box.note))
    text = Text.assemble((printable(box.name), "bold"), "  ", (box.state, _STYLES[box.tone]), overflow="fold")
    if not box.state:
        text.append(printable(facts.pop(0)), "dim")
    for fact in facts:
        text.append(f"\n{printable(fact)}", "dim")
    return text


def _packed(facts: tuple[str, ...]) -> list[str]:
    """Put short facts into one line, as far as that leaves room for the tree on a terminal of 80 columns."""
    lines = [""]
    for fact in facts:
        longer = f"{lines[-1]}, {fact}" if lines[-1] else fact
        lines[-1:] = [longer] if not lines[-1] or cell_len(longer) <= _FACTS else [lines[-1], fact]
    return lines


def _band(band: Band) -> Text:
    state = (band.state, _STYLES[band.tone])
    return Text.assemble((printable(band.name), "bold"), "  ", state, "  ", (printable(band.note or ""), "dim"))
