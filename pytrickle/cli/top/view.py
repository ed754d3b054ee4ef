"""What the user of `pytrickle top` looks at, and what each key does to it; nothing here touches a system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

PAGE = 10
HELP = (
    "Up, Down, j, k   choose a stream table, or scroll a text",
    "Enter, e         explain it: how its next refresh would go",
    "p                pause it, or resume it where it is paused",
    "r                have the running refresher refresh it now",
    "Escape           back to the tables",
    "q                leave",
)


class Do(Enum):
    """What a key asks for that takes a database, or the end."""

    QUIT = auto()
    EXPLAIN = auto()
    PAUSE = auto()
    REFRESH = auto()


@dataclass(frozen=True, slots=True)
class View:
    """The stream table that is chosen, by name; a text that lies over the tables, if any; and one line of news."""

    chosen: str | None = None
    title: str = ""
    text: tuple[str, ...] = ()
    first_line: int = 0
    news: str = ""
    is_trouble: bool = False

    @property
    def shows_text(self) -> bool:
        """Whether a text lies over the tables."""
        return bool(self.title)

    def told(self, news: str, *, is_trouble: bool = False) -> View:
        """Return the view with one line of news."""
        return replace(self, news=news, is_trouble=is_trouble)

    def opened(self, title: str, text: Sequence[str]) -> View:
        """Return the view with a text over the tables."""
        return replace(self, title=title, text=tuple(text), first_line=0, news="")


STEPS = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -PAGE, "page down": PAGE, "home": -(10**6), "end": 10**6}
ACTIONS = {"enter": Do.EXPLAIN, "e": Do.EXPLAIN, "p": Do.PAUSE, "r": Do.REFRESH}


def pressed(view: View, key: str, names: Sequence[str]) -> tuple[View, Do | None]:
    """Return what a key makes of the view, and what it asks for; `names` are the stream tables from the top down.

    >>> pressed(View("a"), "down", ["a", "b"])[0].chosen
    'b'
    >>> pressed(View("b"), "r", ["a", "b"])[1]
    <Do.REFRESH: 4>
    """
    if key in ("q", "interrupt"):
        return view, Do.QUIT
    if key == "escape":
        return replace(view, title="", text=(), news=""), None
    if key in ("?", "h"):
        return view.opened("Keys", HELP), None
    if key in STEPS:
        return moved(view, STEPS[key], names), None
    if key in ACTIONS and not view.shows_text:
        return (view, ACTIONS[key]) if names else (view.told("No stream table is shown yet."), None)
    return view, None


def moved(view: View, step: int, names: Sequence[str]) -> View:
    """Choose another stream table, or scroll the text that lies over them."""
    if view.shows_text:
        return replace(view, first_line=max(0, min(view.first_line + step, len(view.text) - 1)))
    if not names:
        return view
    at = names.index(view.chosen) if view.chosen in names else 0
    return replace(view, chosen=names[max(0, min(at + step, len(names) - 1))], news="")


def settled(view: View, names: Sequence[str]) -> View:
    """Choose the first stream table where the chosen one is gone; where there was none, that is no news any more."""
    if view.chosen in names:
        return view
    first = next(iter(names), None)
    return replace(view, chosen=first, news=view.news if view.chosen or first is None else "")
