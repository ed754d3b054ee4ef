"""The command that shows a live screen: top."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from logging import NullHandler, getLogger
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live

from pytrickle.cli import values
from pytrickle.cli.command import Invocation, command
from pytrickle.cli.console import console
from pytrickle.cli.top.act import Acts
from pytrickle.cli.top.frame import frame
from pytrickle.cli.top.keyboard import keyboard, keys
from pytrickle.cli.top.view import Do, View, pressed, settled
from pytrickle.cli.top.watch import Seen, Watch

app = typer.Typer()

# Ages go on between two looks at the database, and a terminal may get another size.
REDRAWN = 0.25
SHORTEST = 0.1


@command(app, "top", example="pytrickle top --interval 5s")
def top(
    invocation: Invocation,
    interval: Annotated[
        timedelta, typer.Option(parser=values.duration, metavar="DURATION", help="How often to look.")
    ] = "2s",  # type: ignore[assignment]
) -> None:
    """Watch what goes on, live. Groups, sources, stream tables; keys explain, pause and refresh, q leaves.

    It needs no more rights than status, but for what the keys do. An outage of the database is waited out.
    """
    if invocation.as_json:
        raise typer.BadParameter("A live screen has no JSON; pytrickle status --json has what it shows.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise typer.BadParameter("A live screen needs a terminal; pytrickle status prints the same once.")
    seconds = max(interval.total_seconds(), SHORTEST)
    pool = ThreadPoolExecutor(1)
    try:
        with invocation.client() as reader, invocation.client() as actor, Watch(reader, seconds) as watch:
            _show(watch, Acts(actor, pool))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _show(watch: Watch, acts: Acts) -> None:
    """Draw and read keys until one asks to leave."""
    target, view = console(sys.stdout), View()
    # What the database says beside its answers must not be written over the screen.
    getLogger("pytrickle").addHandler(NullHandler())
    with suppress(KeyboardInterrupt), keyboard(), Live(console=target, screen=True, auto_refresh=False) as live:
        while True:
            seen = watch.seen()
            names = _names(seen)
            view = settled(acts.finish(view), names)
            live.update(_drawn(target, seen, view), refresh=True)
            for key in keys(REDRAWN):
                view, do = pressed(view, key, names)
                if do is Do.QUIT:
                    return
                if do is not None:
                    view = acts.begin(do, view, _is_paused(seen, view))
                    watch.again()


def _drawn(target: Console, seen: Seen, view: View) -> Group:
    return Group(*frame(seen, view, datetime.now(UTC), (target.width, target.height)))


def _names(seen: Seen) -> Sequence[str]:
    return [row.stream_table for row in seen.state.stream_tables] if seen.state else []


def _is_paused(seen: Seen, view: View) -> bool:
    tables = seen.state.stream_tables if seen.state else ()
    return any(row.paused for row in tables if row.stream_table == view.chosen)
