"""Drawing: layers, places and arrows of any graph, and texts that Mermaid and XML can read whatever names there are."""

from __future__ import annotations

import io
import re
from itertools import combinations, pairwise
from xml.etree import ElementTree

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from matplotlib.image import imread

from pytrickle.inspect.drawing.layers import hanging, layers, reading
from pytrickle.inspect.drawing.layout import Frame, layout
from pytrickle.inspect.drawing.mermaid import mermaid
from pytrickle.inspect.drawing.picture import Band, Box, Picture, Tone, printable
from pytrickle.inspect.drawing.png import png
from pytrickle.inspect.drawing.sheet import COLOURS, LETTER, LINE, MARGIN, PADDING, sheet
from pytrickle.inspect.drawing.svg import svg

SVG = "{http://www.w3.org/2000/svg}"


def table(name: str, *reads: str, tone: Tone = Tone.GOOD) -> Box:
    return Box(name, "ok", tone, ("calculated, gate: run",), None, reads)


DIAMOND = Picture(
    (
        Box("orders", lines=("table",), groups=("pipeline",)),
        Box("rates", lines=("table",), groups=("pipeline",)),
        table("left", "orders"),
        table("right", "orders"),
        table("report", "left", "right", "rates", tone=Tone.WAITING),
    ),
    (Band("pipeline", "apart", Tone.WAITING, "rates is 5 min behind orders"),),
    "As of noon.",
)
NASTY = [
    'public."a ""b"" <i>&amp;#1;`x`"',
    'public."two\nlines\x1b[31m\x00"',
    'public."end"',
    'public."] --> n0["',
    'public."; click n0 href javascript:alert(1)"',
    'public."表 ünïcode \u202e 🐘"',
    f'public."{"w" * 63}"',
]


@st.composite
def graphs(draw: st.DrawFn) -> nx.DiGraph:
    """Any graph in which later boxes read earlier ones."""
    names = [f"t{number}" for number in range(draw(st.integers(1, 9)))]
    pairs = list(combinations(names, 2))
    graph = nx.DiGraph(draw(st.lists(st.sampled_from(pairs), unique=True, max_size=14)) if pairs else [])
    graph.add_nodes_from(names)
    return graph


def test_each_box_is_in_the_layer_after_the_last_that_it_reads() -> None:
    assert layers(reading(DIAMOND)) == (("orders", "rates"), ("left", "right"), ("report",))
    chain = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")])
    assert layers(chain) == (("a",), ("b",), ("c",), ("d",))


def test_boxes_that_read_each_other_share_a_layer() -> None:
    circle = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")])
    assert layers(circle) == (("a",), ("b", "c"), ("d",))
    assert hanging(circle) == {"a": None, "b": "a", "c": "b", "d": "c"}
    assert set(layout(circle, dict.fromkeys("abcd", (10.0, 10.0))).frames) == set("abcd")


def test_each_box_hangs_below_the_last_layer_that_it_reads() -> None:
    assert hanging(reading(DIAMOND)) == {
        "orders": None,
        "rates": None,
        "left": "orders",
        "right": "orders",
        "report": "left",
    }


def test_what_no_box_stands_for_is_not_drawn() -> None:
    assert set(reading(Picture((table("alone", "dropped"),)))) == {"alone"}


@given(graphs(), st.integers(10, 90))
def test_no_box_overlaps_another_and_no_arrow_runs_across_one(graph: nx.DiGraph, height: int) -> None:
    sizes = {name: (40.0 + 7 * number, float(height + 5 * (number % 3))) for number, name in enumerate(sorted(graph))}
    found = layout(graph, sizes)
    for one, other in combinations(found.frames.values(), 2):
        assert apart(one, other)
    for (source, reader), points in found.arrows.items():
        assert points[0][0] == found.frames[source].left + found.frames[source].width
        assert points[-1] == (found.frames[reader].left, middle(found.frames[reader]))
        curves, lines = list(pairwise(points))[::2], list(pairwise(points))[1::2]
        frames = found.frames.values()
        assert not [f for (x, _), (to_x, _) in curves for f in frames if f.left < to_x and x < f.left + f.width]
        across = [(f, y) for (x, y), (to_x, _) in lines for f in frames if f.left < to_x and x < f.left + f.width]
        assert not [f for f, y in across if spans(f, y)]
        assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert all(f.left >= 0 and f.top >= 0 and f.width >= sizes[name][0] for name, f in found.frames.items())
    assert all(f.left + f.width <= found.size[0] and f.top + f.height <= found.size[1] for f in found.frames.values())


def apart(one: Frame, other: Frame) -> bool:
    beside = one.left + one.width < other.left or other.left + other.width < one.left
    return beside or one.top + one.height < other.top or other.top + other.height < one.top


def spans(frame: Frame, y: float) -> bool:
    return frame.top <= y <= frame.top + frame.height


def middle(frame: Frame) -> float:
    return frame.top + frame.height / 2


def test_two_parallel_chains_do_not_cross() -> None:
    chains = nx.DiGraph([("a", "z1"), ("z1", "a2"), ("b", "y1"), ("y1", "b2")])
    frames = layout(chains, dict.fromkeys(chains, (10.0, 10.0))).frames
    assert [middle(frames[name]) for name in ("a", "z1", "a2")] == [middle(frames["a"])] * 3
    assert [middle(frames[name]) for name in ("b", "y1", "b2")] == [middle(frames["b"])] * 3


def parsed(picture: Picture) -> ElementTree.Element:
    return ElementTree.fromstring(svg(picture))


def test_svg_has_a_frame_per_box_and_an_arrow_per_edge() -> None:
    root = parsed(DIAMOND)
    names = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "name"]
    assert names == ["orders", "rates", "left", "right", "report"]
    assert len(list(root.iter(f"{SVG}rect"))) == 1 + len(names)
    assert len([path for path in root.iter(f"{SVG}path") if path.get("marker-end")]) == 5
    said = "".join(root.itertext())
    for text in ("calculated, gate: run", "in pipeline", "● pipeline: apart", "rates is 5 min behind", "As of noon."):
        assert text in said, text


def test_all_that_svg_draws_is_within_its_borders() -> None:
    root = parsed(DIAMOND)
    width, height = (float(root.get(key, "0")) for key in ("width", "height"))
    group = next(g for g in root.iter(f"{SVG}g") if g.get("transform"))
    dx, dy = map(float, re.findall(r"[\d.]+", group.get("transform", "")))
    for rect in group.iter(f"{SVG}rect"):
        x, y, w, h = (float(rect.get(key, "0")) for key in ("x", "y", "width", "height"))
        assert x + dx >= 0 and x + dx + w <= width and y + dy >= 0 and y + dy + h <= height


@pytest.mark.parametrize("name", NASTY)
def test_svg_is_xml_whatever_the_names(name: str) -> None:
    picture = Picture(
        (Box(name, groups=(name,), note=name), table("reader", name)), (Band(name, "apart", note=name),), name
    )
    root = parsed(picture)
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert f"{printable(name)}. {printable(name)}" in titles
    assert {child.tag for child in root.iter()} <= {
        SVG + tag for tag in ("svg", "title", "style", "defs", "marker", "path", "rect", "g", "text", "tspan")
    }


def test_a_long_name_is_cut_in_its_frame_and_whole_in_the_tooltip() -> None:
    name = "public." + "w" * 63
    root = parsed(Picture((table(name),)))
    assert [text.text for text in root.iter(f"{SVG}text")][1].endswith("w…")
    assert name in [title.text for title in root.iter(f"{SVG}title")]


def test_a_png_shows_every_box_in_its_colour_at_twice_the_size_of_the_svg() -> None:
    root = parsed(DIAMOND)
    pixels = imread(io.BytesIO(png(DIAMOND)))[..., :3]
    assert pixels.shape[:2] == (2 * int(root.get("height", "0")), 2 * int(root.get("width", "0")))
    places = sheet(DIAMOND)
    for box in DIAMOND.boxes:
        frame = places.places.frames[box.name]
        x, y = frame.left + MARGIN + frame.width - 4, frame.top + places.top + frame.height / 2
        assert to_hex(pixels[round(2 * y), round(2 * x)]) == COLOURS[box.tone][0], box.name
        top, left = round(2 * (frame.top + places.top + PADDING)), round(2 * (frame.left + MARGIN + PADDING))
        name = pixels[top : top + round(2 * LINE), left : left + round(2 * LETTER * len(box.name))]
        assert name.min() < 0.5, f"{box.name} is not written in its box"


@pytest.mark.parametrize("name", NASTY)
def test_a_png_is_drawn_whatever_the_names(name: str) -> None:
    picture = Picture((Box(f"{name}$", groups=(name,)), table("reader$", f"{name}$")), (Band(name, "apart"),), name)
    assert png(picture).startswith(b"\x89PNG")


LABEL = r'"(?:[\w .,:·/+…-]|#\d+;|<br/>)*"'
LINES = re.compile(
    rf"flowchart LR|    %% .*|    n\d+\[{LABEL}\]:::\w+|    n\d+\[\({LABEL}\)\]:::\w+|    g\d+{{{{{LABEL}}}}}:::\w+"
    rf"|    n\d+ --> n\d+|    g\d+ -\.- n\d+|    classDef \w+ [\w:#,-]+|    empty\[{LABEL}\]"
)


def test_mermaid_draws_boxes_arrows_and_groups() -> None:
    lines = mermaid(DIAMOND).splitlines()
    assert lines[:3] == ["flowchart LR", "    %% As of noon.", '    n0[("orders<br/>table")]:::plain']
    assert '    n4["report: ok<br/>calculated, gate: run"]:::waiting' in lines
    assert '    g0{{"pipeline: apart"}}:::waiting' in lines
    assert [line.strip() for line in lines if "-->" in line] == [
        *("n0 --> n2", "n0 --> n3", "n2 --> n4", "n3 --> n4", "n1 --> n4")
    ]
    assert [line.strip() for line in lines if "-.-" in line] == ["g0 -.- n0", "g0 -.- n1"]
    assert [line.split()[1] for line in lines if "classDef" in line] == ["plain", "good", "waiting"]
    assert all(map(LINES.fullmatch, lines))


@pytest.mark.parametrize("name", NASTY)
def test_mermaid_stays_within_its_grammar_whatever_the_names(name: str) -> None:
    picture = Picture((Box(name, groups=(name,)), table("reader", name)), (Band(name, "apart"),), name)
    for line in mermaid(picture).splitlines():
        assert LINES.fullmatch(line), line


def test_a_picture_without_boxes_says_its_caption() -> None:
    empty = Picture((), caption="No stream table yet.")
    assert mermaid(empty) == 'flowchart LR\n    empty["No stream table yet."]\n'
    assert "No stream table yet." in "".join(parsed(empty).itertext())
