"""Commands for who reads a stream table: freshness, as-of; wait and assert-fresh, which end with 3 while behind."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from pytrickle.cli import values
from pytrickle.cli.command import Invocation, command
from pytrickle.cli.commands.stream_tables import Name
from pytrickle.cli.console import progress
from pytrickle.cli.show import render, render_freshness

app = typer.Typer()

TIMEOUT = timedelta(seconds=30)


@command(app, "freshness", example="pytrickle freshness")
def freshness(invocation: Invocation) -> None:
    """Show how far stream tables are behind, and why. By cause, with the culprit named."""
    with invocation.client() as client:
        rows = client.freshness()
    invocation.show(rows, lambda rows: render_freshness.freshness(rows) if rows else "No stream table yet.")


@command(app, "wait", example="pytrickle wait totals 2026-01-01T12:00:00Z --timeout 5m")
def wait(
    invocation: Invocation,
    name: Name,
    watermark: Annotated[
        values.Watermark,
        typer.Argument(
            parser=values.watermark,
            metavar="WATERMARK",
            help="ISO 8601 with a UTC offset or Z; 'infinity' if all sources are exhausted; or the number of a batch.",
        ),
    ],
    timeout: Annotated[
        timedelta | None,
        typer.Option(parser=values.duration, metavar="DURATION", help="How long to wait (default: 30 seconds)."),
    ] = None,
) -> None:
    """Wait until a stream table shows what is asked for. Exit code 3 if it does not when the time is over."""
    longest = TIMEOUT if timeout is None else timeout
    with invocation.client() as client, progress(f"waiting for {name}"):
        reached = client.wait_for(name, watermark, timeout=longest)
    field = "effective_batch" if isinstance(reached, int) else "effective_watermark"
    result = {"stream_table": name, field: reached}
    invocation.show(result, lambda _: f"{name} is complete through {values.reached(reached)}.")


@command(app, "assert-fresh", example="pytrickle assert-fresh totals 10m")
def assert_fresh(
    invocation: Invocation,
    name: Name,
    max_staleness: Annotated[
        timedelta, typer.Argument(parser=values.duration, metavar="MAX_STALENESS", help="How old its data may be.")
    ],
) -> None:
    """Check how old the data of a stream table is. Exit code 3 if it is older than that or was never filled."""
    with invocation.client() as client:
        staleness = client.assert_fresh(name, max_staleness)
    result = {"stream_table": name, "staleness": staleness}
    age = f"The data of {name} is {values.length(staleness)} old."
    invocation.show(result, lambda _: age if staleness else f"{name} shows all that its sources have.")


@command(app, "as-of", example="pytrickle as-of totals 2026-01-01T12:00:00Z")
def as_of(
    invocation: Invocation,
    name: Name,
    watermark: Annotated[
        values.Watermark,
        typer.Argument(
            parser=values.watermark,
            metavar="WATERMARK",
            help="ISO 8601 with a UTC offset or Z; or the number of a batch.",
        ),
    ],
) -> None:
    """Show what a query gave as of an earlier watermark. As long as the change history is kept."""
    with invocation.client() as client, progress(f"reading {name}"):
        found = client.as_of(name, watermark, written=True)
    invocation.show(found, render.as_of)
