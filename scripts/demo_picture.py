"""Play the demo and write as a picture, docs/demo.svg, what was last on its screen while the gate was closed."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI

from pytrickle.cli.show.columns import columns
from pytrickle.config import EngineName
from pytrickle.demo import run
from pytrickle.demo.screen import Scene, live_view

PICTURE = Path(__file__).parents[1] / "docs/demo.svg"
WIDTH = 130
# Rich's own frame, but for its fonts: a page must not ask another server for them.
FRAME = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def main(engine: EngineName) -> None:
    """Play the demo, and draw the last scene in which the loaders are out of step."""
    scenes: list[Scene] = []

    @contextmanager
    def keeping(screen: run.Screen) -> Iterator[Callable[[Scene], None]]:
        yield scenes.append

    run._display = keeping
    run.run_demo(None, timedelta(seconds=45), False, columns, engine)
    chosen = next(scene for scene in reversed(scenes) if len(scene.jobs) > 6 and out_of_step(scene))
    PICTURE.write_text(drawn(chosen), encoding="utf-8")


def out_of_step(scene: Scene) -> bool:
    """Whether one report waits, and another shows orders without their lines."""
    gated = any(table.decision == "gated" for table in scene.status.stream_tables)
    return gated and any(tally.last.incomplete for tally in scene.tallies.values())


def drawn(scene: Scene) -> str:
    """Draw a scene as a terminal shows it."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(live_view(scene, columns))
    return console.export_svg(title="pytrickle demo", theme=MONOKAI, code_format=FRAME, unique_id="demo")


if __name__ == "__main__":
    main(EngineName(*sys.argv[1:]) if len(sys.argv) > 1 else EngineName.SPARK)
