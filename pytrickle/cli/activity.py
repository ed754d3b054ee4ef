"""What is under way and since when, shown on a terminal while it lasts, with results as they come."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from pytrickle.cli.console import console, show, show_warning
from pytrickle.cli.documents import visible

if TYPE_CHECKING:
    from pytrickle.refresh.values import RefreshResult

NAME = "pytrickle"


@dataclass(slots=True)
class Activity:
    """A line for each thing under way, on stderr. Where that is no terminal, nothing is shown."""

    display: Progress
    task: TaskID
    shown: dict[str, TaskID] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def is_seen(self) -> bool:
        """Whether somebody watches: then results are worth showing as they come."""
        return not self.display.disable and sys.stdout.isatty()

    def begin(self, name: str, description: str) -> None:
        """Show what has begun."""
        with self._lock:
            self.shown[name] = self.display.add_task(visible(description), total=None)
            self.display.update(self.task, visible=False)

    def end(self, name: str) -> None:
        """Take away what has ended."""
        with self._lock:
            if (task := self.shown.pop(name, None)) is not None:
                self.display.remove_task(task)
            self.display.update(self.task, visible=not self.shown)

    def result(self, result: RefreshResult, line: RenderableType | None) -> None:
        """Take away a stream table of which something came, and show that, if there is a line for it."""
        self.end(result.stream_table)
        if line is not None:
            with self.apart():
                show(line)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Have no line on the terminal while the block writes: the next picture erases as many lines as the last."""
        with self._lock:
            lines = [task.id for task in self.display.tasks if task.visible]
            for line in lines:
                self.display.update(line, visible=False)
            self.display.refresh()
            yield
            for line in lines:
                self.display.update(line, visible=True)
            self.display.refresh()


class _Watcher(logging.Handler):
    """Turns what the package logs into what is shown."""

    def __init__(self, activity: Activity, as_json: bool) -> None:
        super().__init__()
        self._activity, self._as_json = activity, as_json

    def emit(self, record: logging.LogRecord) -> None:
        """Show the beginning of a refresh or of Spark, the end of that, and warnings."""
        event: Any = getattr(record, "event", None)
        match event:
            case {"begins": str(name)}:
                self._activity.begin(name, record.getMessage())
            case {"ends": str(name)}:
                self._activity.end(name)
            case _ if record.levelno >= logging.WARNING:
                with self._activity.apart():
                    show_warning(record.getMessage(), None, as_json=self._as_json)


@contextmanager
def activity(task: str, *, as_json: bool = False) -> Iterator[Activity]:
    """Show what is under way for the length of the block; at first, the task as a whole."""
    target = console(sys.stderr)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    silent = not target.is_terminal
    display = Progress(
        *columns, console=target, transient=True, disable=silent, redirect_stdout=False, redirect_stderr=False
    )
    with display:
        found = Activity(display, display.add_task(visible(task), total=None))
        if silent:
            yield found
            return
        with _watched(_Watcher(found, as_json)):
            yield found


@contextmanager
def _watched(handler: logging.Handler) -> Iterator[None]:
    logger = logging.getLogger(NAME)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
