"""Where output goes: results to stdout, errors and progress to stderr, colour only on a terminal."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from pytrickle.cli.documents import show_json_error, visible
from pytrickle.cli.values import sentence
from pytrickle.errors import PytrickleError

# A pipe has no width: wide enough that no line of a table is ever cut there.
_PIPE_WIDTH = 2000
_COMMAND = re.compile(r"\bpytrickle [a-z]|\bSELECT ")


@dataclass(frozen=True, slots=True)
class _Visible:
    """Something to print, without the control characters that it holds; styles are no part of its text."""

    content: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.content, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


class _Escaping(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Visible(content) for content in renderables]


def console(stream: TextIO) -> Console:
    """Return a console on a stream that prints names and queries as they are, brackets included."""
    width = None if stream.isatty() else _PIPE_WIDTH
    target = Console(file=stream, markup=False, emoji=False, highlight=False, width=width)
    target.push_render_hook(_Escaping())
    return target


def show(content: RenderableType) -> None:
    """Print a result for people on stdout."""
    target = console(sys.stdout)
    target.print(content, soft_wrap=isinstance(content, str), crop=False)


def show_note(text: str) -> None:
    """Print a remark that is not part of the result on stderr."""
    console(sys.stderr).print(text, style="dim", soft_wrap=True)


def show_warning(message: str, hint: str | None, *, as_json: bool) -> None:
    """Print what is dangerous and how to avoid it on stderr: two plain sentences, or one line of JSON."""
    if as_json:
        sys.stderr.write(json.dumps({"warning": message, "hint": hint}) + "\n")
        return
    _tell(("warning: ", "bold yellow"), message)
    if hint:
        _tell(("hint: ", "bold"), hint)


def show_error(error: PytrickleError, *, as_json: bool) -> None:
    """Print what went wrong, where, and what to do about it on stderr; or one JSON document, with the sentences."""
    if as_json:
        show_json_error(str(error), error.hint, type(error).__name__, error.sqlstate)
        return
    _tell(("error: ", "bold red"), str(error))
    if error.excerpt:
        console(sys.stderr).print(error.excerpt, soft_wrap=True)
    if error.hint:
        _tell(("hint: ", "bold"), error.hint)


def _tell(label: tuple[str, str], sentences: str) -> None:
    """Print sentences on stderr, on a terminal folded between words; one with a command is there to be copied."""
    target = console(sys.stderr)
    if target.is_terminal:
        # Those of SQL that is there to be copied mean the same as they are.
        lines = sentences.split("\n")
        sentences = "\n".join(line if "SELECT " in line else sentence(line, local=True) for line in lines)
    copied = _COMMAND.search(sentences) is not None
    target.print(Text.assemble(label, sentences), soft_wrap=copied or not target.is_terminal)


@contextmanager
def progress(task: str) -> Iterator[Callable[[str], None]]:
    """Show on stderr what is under way and for how long; silent where stderr is no terminal.

    Yields a function that says what is under way from now on.
    """
    # Loaded here: most commands show no progress, and a shell waits for each of them.
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    target = console(sys.stderr)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=target, transient=True, disable=not target.is_terminal) as display:
        shown = display.add_task(task, total=None)
        yield lambda description: display.update(shown, description=description)
