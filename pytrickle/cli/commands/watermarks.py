"""Commands on watermarks: advance, list, history, reset, withdrawn."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from pytrickle.cli import values
from pytrickle.cli.command import Invocation, command, root_options
from pytrickle.cli.show import render, render_watermarks

app = typer.Typer(help="Watermarks of sources: how far each is complete.", no_args_is_help=True)
app.callback()(root_options)

Source = Annotated[str, typer.Argument(help="The source table; with its schema if outside the search path.")]


@command(app, "advance", example="pytrickle watermark advance orders 2026-01-01T12:00:00Z")
def advance(
    invocation: Invocation,
    source: Source,
    watermark: Annotated[
        values.Watermark,
        typer.Argument(
            parser=values.watermark,
            metavar="WATERMARK",
            help="ISO 8601 with a UTC offset or Z; 'infinity' if the source is exhausted; or the number of a batch.",
        ),
    ],
) -> None:
    """Declare a source complete through a moment or a batch. Every row that belongs before it is committed."""
    with invocation.client() as client:
        client.advance_watermark(source, watermark)
    result = {"source": source, "watermark": watermark}
    invocation.show(result, lambda _: f"{source} is complete through {values.reached(watermark)}.")


@command(app, "reset", example="pytrickle watermark reset orders 2026-01-01T12:00:00Z")
def reset(
    invocation: Invocation,
    source: Source,
    watermark: Annotated[
        values.Watermark | None,
        typer.Argument(
            parser=values.watermark, metavar="WATERMARK", help="The right one; without it, all are forgotten."
        ),
    ] = None,
) -> None:
    """Take back wrong watermarks. Those of a source after the right one are withdrawn, with a record of who did it.

    What is made of the source claims no more than what is left allows. Without the right one the source forgets all of
    them, for which it must be in no group; its next one may be of the other kind.
    """
    with invocation.client() as client:
        client.reset_watermark(source, watermark)
    left = "has no watermark any more" if watermark is None else f"is complete through {values.reached(watermark)} only"
    result = {"source": source} if watermark is None else {"source": source, "watermark": watermark}
    invocation.show(result, lambda _: f"{source} {left}.")


@command(app, "withdrawn", example="pytrickle watermark withdrawn")
def withdrawn(invocation: Invocation) -> None:
    """List what was taken back. Newest first, with who had said it, and who took it back."""
    with invocation.client() as client:
        rows = client.withdrawn_watermarks()
    invocation.show(rows, render_watermarks.withdrawn)


@command(app, "list", example="pytrickle watermark list")
def list_watermarks(invocation: Invocation) -> None:
    """List the watermarks. One line for every source that ever advanced."""
    with invocation.client() as client:
        rows = client.watermarks()
    now = datetime.now(UTC)
    invocation.show(rows, lambda rows: render.watermarks(rows, now) if rows else "No source ever advanced.")


@command(app, "history", example="pytrickle watermark history orders --limit 5")
def history(
    invocation: Invocation,
    source: Source,
    limit: Annotated[int, values.limit("advances")] = 20,
) -> None:
    """Show the latest advances of a source. Newest first."""
    with invocation.client() as client:
        rows = client.watermark_history(source)[:limit]
    invocation.show(rows, render.watermark_history)
