"""Commands that refresh stream tables, and the history of what they did: refresh, tick, run, history."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from pytrickle.cli.command import Invocation, command
from pytrickle.cli.console import progress, show, show_error, show_json, show_note
from pytrickle.cli.show import render
from pytrickle.config import EngineName
from pytrickle.errors import PytrickleError

if TYPE_CHECKING:
    from pytrickle.refresh.values import RefreshResult

app = typer.Typer()

Engine = Annotated[
    EngineName | None,
    typer.Option("--engine", help="Who computes; without it the setting PYTRICKLE_ENGINE, else auto."),
]

SIGNALS = (signal.SIGTERM, signal.SIGINT)
GRACE = 3.0
STOPPED = "Stopped; a refresh that was under way has changed nothing unless it had committed."


@command(app, "refresh", example="pytrickle refresh totals")
def refresh(
    invocation: Invocation,
    name: Annotated[str, typer.Argument(help="Name of the stream table; with its schema if outside the search path.")],
    respect_gate: Annotated[
        bool, typer.Option("--respect-gate", help="Skip the refresh while the watermarks of its sources disagree.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Compute all of it anew, also if its mode is strict.")] = False,
    engine: Engine = None,
) -> None:
    """Refresh one stream table now. It need not be due, and a gate does not stop it unless asked to."""
    with invocation.client(engine=engine) as client, progress(f"refreshing {name}"):
        result = client.refresh(name, respect_gate=respect_gate, full=full)
    invocation.show(result, render.result)


@command(app, "tick", example="pytrickle tick")
def tick(invocation: Invocation, engine: Engine = None) -> None:
    """Refresh all that is due, once. Sources come before the tables that read them; exit code 1 if one failed."""
    with invocation.client(engine=engine) as client, progress("refreshing what is due") as describe:
        results = client.tick(on_result=lambda result: describe(f"refreshed {result.stream_table}, next"))
    invocation.show(results, render.results)
    _fail_if_any_failed(results)


@command(app, "run", example="pytrickle run")
def run(
    invocation: Invocation,
    once: Annotated[bool, typer.Option("--once", help="Stop after one tick.")] = False,
    engine: Engine = None,
) -> None:
    """Refresh what is due until stopped. Loaders wake it, SIGTERM or Ctrl-C stops it; one line per result.

    With --json every line is a JSON document of its own. A lost server is waited for. Of several on one database one
    leads; the others stand by, and one of them takes over when it ends.
    """
    results: list[RefreshResult] = []

    def show_result(result: RefreshResult) -> None:
        listen()
        if once:
            results.append(result)
        if invocation.as_json:
            show_json(result, indent=None)
        else:
            show(render.result(result))

    def show_trouble(error: PytrickleError) -> None:
        show_error(error, as_json=invocation.as_json)

    def show_role(leads: bool) -> None:
        show_note("Refreshing." if leads else "Another refresher leads; standing by to take over.")

    with invocation.client(engine=engine) as client, _stopped_by_signals(client.stop) as listen:
        client.run(once=once, on_result=show_result, on_error=show_trouble, on_leader=show_role)
    _fail_if_any_failed(results)


@command(app, "history", example="pytrickle history totals --limit 5")
def history(
    invocation: Invocation,
    name: Annotated[str | None, typer.Argument(help="Stream table; all without a name.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many refreshes to show.")] = 20,
) -> None:
    """Show the latest refreshes. What was done, how many rows changed, how long it took, and why; newest first."""
    with invocation.client() as client:
        rows = client.history(name, limit=limit)
    invocation.show(rows, render.history)


def _fail_if_any_failed(results: list[RefreshResult] | tuple[RefreshResult, ...]) -> None:
    if any(result.action == "FAILED" for result in results):
        raise typer.Exit(1)


@contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Let the first SIGTERM or Ctrl-C end the block after the refresh under way, and a second one at once.

    What cannot be interrupted, such as the start of a Java process in another thread, gets a moment to end; then the
    process ends without it.

    Yields what listens for them anew: Spark puts its own handler of Ctrl-C in place of ours when it starts.
    """
    received: list[int] = []
    last_resort = Timer(GRACE, _end_process)
    last_resort.daemon = True

    def ask_to_stop(number: int, _frame: FrameType | None) -> None:
        if received:
            # A third one must not interrupt what ends already.
            for each in SIGNALS:
                signal.signal(each, signal.SIG_IGN)
            last_resort.start()
            raise KeyboardInterrupt
        received.append(number)
        show_note("Stopping after the refresh under way; Ctrl-C stops at once.")
        stop()

    def listen() -> None:
        for number in SIGNALS:
            signal.signal(number, ask_to_stop)

    previous = {number: signal.getsignal(number) for number in SIGNALS}
    listen()
    try:
        yield listen
    except KeyboardInterrupt:
        stop()
        show_note(STOPPED)
    finally:
        last_resort.cancel()
        for number, handler in previous.items():
            signal.signal(number, handler)


def _end_process() -> None:
    """End the process as a kill would, which no refresh minds: what had not committed has changed nothing."""
    show_note(STOPPED)
    sys.stdout.flush()
    os._exit(0)
