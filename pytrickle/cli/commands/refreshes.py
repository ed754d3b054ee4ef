"""Commands that refresh stream tables, and the history of what they did: refresh, tick, history."""

from __future__ import annotations

from typing import Annotated

import typer

from pytrickle.cli import values
from pytrickle.cli.activity import activity
from pytrickle.cli.command import Engine, Invocation, command, fail_if_any_failed
from pytrickle.cli.show import render

app = typer.Typer()


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
    with invocation.client(engine=engine) as client, activity(f"refreshing {name}", as_json=invocation.as_json):
        result = client.refresh(name, respect_gate=respect_gate, full=full)
    invocation.show(result, render.result)


@command(app, "tick", example="pytrickle tick")
def tick(invocation: Invocation, engine: Engine = None) -> None:
    """Refresh all that is due, once. Sources come before the tables that read them; exit code 1 if one failed."""
    as_json = invocation.as_json
    with invocation.client(engine=engine) as client, activity("looking for what is due", as_json=as_json) as now:
        shown = now.is_seen and not as_json
        results = client.tick(on_result=lambda row: now.result(row, render.result(row) if shown else None))
    if not (shown and results):
        invocation.show(results, render.results)
    fail_if_any_failed(results)


@command(app, "history", example="pytrickle history totals --limit 5")
def history(
    invocation: Invocation,
    name: Annotated[str | None, typer.Argument(help="Stream table; all without a name.")] = None,
    limit: Annotated[int, values.limit("refreshes")] = 20,
) -> None:
    """Show the latest refreshes. What was done, how many rows changed, how long it took, and why; newest first."""
    with invocation.client() as client:
        rows = client.history(name, limit=limit)
    invocation.show(rows, render.history)
