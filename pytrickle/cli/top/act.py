"""What keys ask of the database: done beside the screen, one after the other, and told in a line."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytrickle.cli.remedies import on_the_command_line
from pytrickle.cli.top.view import Do, View
from pytrickle.errors import PytrickleError

if TYPE_CHECKING:
    from pytrickle.client.client import Client

Change = Callable[[View], View]
BEGUN = {Do.EXPLAIN: "Explaining", Do.PAUSE: "Pausing or resuming", Do.REFRESH: "Asking for a refresh of"}


@dataclass(slots=True)
class Acts:
    """Carries out one thing at a time, with a client of its own: that of the screen is in use."""

    client: Client
    pool: ThreadPoolExecutor
    under_way: Future[Change] | None = None

    def begin(self, do: Do, view: View, paused: bool) -> View:
        """Begin what a key asks for the chosen stream table."""
        if view.chosen is None:
            return view
        if self.under_way is not None:
            return view.told("Something is under way already.")
        self.under_way = self.pool.submit(carried_out, self.client, do, view.chosen, paused)
        return view.told(f"{BEGUN[do]} {view.chosen} …")

    def finish(self, view: View) -> View:
        """Return the view with what came of it, once that is known."""
        if self.under_way is None or not self.under_way.done():
            return view
        change, self.under_way = self.under_way.result(), None
        return change(view)


def carried_out(client: Client, do: Do, name: str, paused: bool) -> Change:
    """Do it, and return what becomes of the view; what fails is told."""
    try:
        return _done(client, do, name, paused)
    except PytrickleError as error:
        hint = on_the_command_line(error.hint or "")
        told = f"{error} {hint}".strip()
        return lambda view: view.told(told, is_trouble=True)


def _done(client: Client, do: Do, name: str, paused: bool) -> Change:
    match do:
        case Do.EXPLAIN:
            lines = client.explain(name).text.splitlines()
            return lambda view: view.opened(name, lines)
        case Do.PAUSE if paused:
            client.resume(name)
            return lambda view: view.told(f"Resumed {name}.")
        case Do.PAUSE:
            client.pause(name)
            return lambda view: view.told(f"Paused {name}; p resumes it.")
        case _:
            client.request_refresh(name)
            return lambda view: view.told(f"Asked for a refresh of {name}; pytrickle run does it.")
