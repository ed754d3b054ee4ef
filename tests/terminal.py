"""A process on a terminal of its own: keys are pressed, and the screen is read as a person sees it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyte

from tests.waiting import wait_for


@dataclass
class Terminal:
    """The end of a pseudo-terminal at which a person sits."""

    process: subprocess.Popen[bytes]
    person: int
    screen: Any
    stream: Any
    written: bytearray = field(default_factory=bytearray)

    def press(self, keys: str) -> None:
        os.write(self.person, keys.encode())

    def look(self) -> str:
        """Return what stands on the screen by now."""
        while select.select([self.person], [], [], 0.02)[0]:
            try:
                shown = os.read(self.person, 65536)
            except OSError:
                break
            if not shown:
                break
            self.written += shown
            self.stream.feed(shown)
        return "\n".join(line.rstrip() for line in self.screen.display)

    def shows(self, *texts: str) -> str:
        """Wait until the screen shows all these texts, and return it."""

        def found() -> str | None:
            screen = self.look()
            return screen if all(text in screen for text in texts) else None

        try:
            shown: str = wait_for(found, f"{texts} on the screen", patience=20)
        except AssertionError as error:
            raise AssertionError(f"{error}; there is:\n{self.look()}") from None
        return shown

    def resize(self, columns: int, lines: int) -> None:
        _set_size(self.person, columns, lines)
        self.screen.resize(lines, columns)
        self.process.send_signal(signal.SIGWINCH)

    def ended(self) -> int:
        """Wait for the end of the process and return its exit code; what it still writes is read."""

        def found() -> tuple[int] | None:
            self.look()
            code = self.process.poll()
            return None if code is None else (code,)

        (code,) = wait_for(found, "the process to end", patience=20)
        self.look()
        return int(code)

    def modes(self) -> list[Any]:
        """Return how the terminal is set: what it does with keys, and what it shows of them."""
        return termios.tcgetattr(self.person)


@contextmanager
def terminal(*arguments: str, columns: int = 80, lines: int = 24) -> Iterator[Terminal]:
    """Run the command line on a terminal of this size for the length of the block."""
    person, inside = pty.openpty()
    _set_size(person, columns, lines)
    screen = pyte.Screen(columns, lines)
    unset = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
    environment = {name: value for name, value in os.environ.items() if name not in unset} | {"TERM": "xterm"}
    command = [sys.executable, "-c", "from pytrickle.cli import main; main()", *arguments]
    process = subprocess.Popen(
        command, stdin=inside, stdout=inside, stderr=inside, env=environment, start_new_session=True, close_fds=True
    )
    os.close(inside)
    try:
        yield Terminal(process, person, screen, pyte.ByteStream(screen))
    finally:
        process.kill()
        process.wait()
        os.close(person)


def _set_size(descriptor: int, columns: int, lines: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
