"""The command that draws the graph of sources and stream tables: dag."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pytrickle.cli.command import Invocation, command
from pytrickle.cli.console import console
from pytrickle.cli.values import jsonable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pytrickle.catalog.reports import Dag

app = typer.Typer()


class Format(StrEnum):
    """How `dag` draws."""

    TREE = "tree"
    MERMAID = "mermaid"
    SVG = "svg"
    PNG = "png"


@command(app, "dag", example="pytrickle dag --format svg --output dag.svg")
def dag(
    invocation: Invocation,
    form: Annotated[Format | None, typer.Option("--format", help="How to draw it (default: tree).")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it to a file instead of the screen.")
    ] = None,
) -> None:
    """Draw the graph of sources and stream tables. With states, schedules, gating, last refreshes and watermark groups.

    As a tree for a terminal, as a Mermaid flowchart for Markdown, as SVG or PNG, or with --json as data.
    """
    if form is not None and invocation.as_json:
        raise typer.BadParameter("--json is a format of its own; leave out --format.")
    if form is Format.PNG and output is None:
        raise typer.BadParameter("A PNG is written to a file; add --output FILE.")
    with invocation.client() as client:
        graph = client.dag()
    form = form or Format.TREE
    if output is None:
        invocation.show(graph, _artist(form))
        return
    _write(output, _document(graph).encode() if invocation.as_json else _file(graph, form))
    invocation.show({"output": str(output)}, lambda _: f"Wrote {output}.")


def _file(graph: Dag, form: Format) -> bytes:
    if form is Format.PNG:
        from pytrickle.cli.show.picture import picture
        from pytrickle.inspect.drawing.png import png

        return png(picture(graph))
    return _plain(_artist(form)(graph)).encode()


def _artist(form: Format) -> Callable[[Dag], RenderableType]:
    """Return what draws a graph as text."""
    # The library for graphs is loaded only where one is drawn.
    from pytrickle.cli.show.picture import picture
    from pytrickle.cli.show.tree import tree
    from pytrickle.inspect.drawing.mermaid import mermaid
    from pytrickle.inspect.drawing.svg import svg

    match form:
        case Format.TREE:
            return lambda graph: tree(picture(graph))
        case Format.MERMAID:
            return lambda graph: mermaid(picture(graph)).rstrip("\n")
        case _:
            return lambda graph: svg(picture(graph)).rstrip("\n")


def _plain(drawing: RenderableType) -> str:
    written = io.StringIO()
    console(written).print(drawing, soft_wrap=isinstance(drawing, str))
    return written.getvalue()


def _document(graph: Dag) -> str:
    return json.dumps(jsonable(graph), indent=2, ensure_ascii=False) + "\n"


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be written: {error.strerror}.") from None
