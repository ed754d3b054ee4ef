"""Keys as they are pressed: the terminal neither waits for a line nor shows what is typed, and is set right again."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)
SEQUENCES = {
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1b[H": "home",
    b"\x1b[F": "end",
    b"\r": "enter",
    b"\n": "enter",
    b"\x1b": "escape",
    b"\x03": "interrupt",
    b"\x04": "interrupt",
}
# A sequence that begins with Escape, or one byte.
_KEY = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)


def named(pressed: bytes) -> list[str]:
    """Return the names of the keys that a terminal sent.

    >>> named(b"jj\\x1b[A\\x1b[1;5C\\rq")
    ['j', 'j', 'up', 'unknown', 'enter', 'q']
    """
    return [SEQUENCES.get(key) or ("unknown" if len(key) > 1 else chr(key[0])) for key in _KEY.findall(pressed)]


def keys(seconds: float) -> list[str]:
    """Wait so long at most for keys, and return those that were pressed; a terminal that is gone is an interrupt."""
    if not select.select([sys.stdin], [], [], seconds)[0]:
        return []
    pressed = os.read(sys.stdin.fileno(), 1024)
    return named(pressed) if pressed else ["interrupt"]


@contextmanager
def keyboard() -> Iterator[None]:
    """Read keys one by one for the length of the block, whose end sets the terminal right: also by a signal."""
    before = termios.tcgetattr(sys.stdin)
    handlers = {number: signal.signal(number, _leave) for number in ENDING}
    # It would leave a terminal behind on which nothing can be read.
    handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
