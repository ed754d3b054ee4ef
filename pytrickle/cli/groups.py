"""Commands on watermark groups: create, alter, drop, list."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from pytrickle.cli import render, values
from pytrickle.cli.command import Invocation, command, root_options

app = typer.Typer(help="Watermark groups: sources whose watermarks must agree.", no_args_is_help=True)
app.callback()(root_options)

Name = Annotated[str, typer.Argument(help="Name of the watermark group.")]
Tolerance = Annotated[
    timedelta | None,
    typer.Option(
        parser=values.duration,
        metavar="DURATION",
        help="How far the watermarks may be apart, such as '30 seconds' or 5m.",
    ),
]


@command(app, "create", example="pytrickle group create order_pipeline orders order_lines --tolerance '30 seconds'")
def create(
    invocation: Invocation,
    name: Name,
    sources: Annotated[list[str], typer.Argument(help="The source tables whose watermarks must agree.")],
    tolerance: Tolerance = None,
) -> None:
    """Create a watermark group. It has one source or more; without --tolerance their watermarks must be equal."""
    tolerance = tolerance or timedelta(0)
    with invocation.client() as client:
        client.create_watermark_group(name, sources, tolerance=tolerance)
    result = {"group_name": name, "sources": sources, "tolerance": tolerance}
    invocation.show(result, lambda _: f"Created watermark group {name}.")


@command(app, "alter", example="pytrickle group alter order_pipeline --tolerance 1m")
def alter(
    invocation: Invocation,
    name: Name,
    sources: Annotated[
        list[str] | None, typer.Option("--source", help="A source of the group; repeat it to give the whole new list.")
    ] = None,
    tolerance: Tolerance = None,
) -> None:
    """Change a group's sources or tolerance. The change takes effect at the next tick."""
    if not sources and tolerance is None:
        raise typer.BadParameter("Nothing to change; give --source or --tolerance.")
    with invocation.client() as client:
        client.alter_watermark_group(name, sources=sources or None, tolerance=tolerance)
    result = {"group_name": name, "sources": sources, "tolerance": tolerance}
    invocation.show(result, lambda _: f"Altered watermark group {name}.")


@command(app, "drop", example="pytrickle group drop order_pipeline")
def drop(invocation: Invocation, name: Name) -> None:
    """Drop a watermark group. Its sources and their watermarks stay."""
    with invocation.client() as client:
        client.drop_watermark_group(name)
    invocation.show({"group_name": name}, lambda _: f"Dropped watermark group {name}.")


@command(app, "list", example="pytrickle group list")
def list_groups(invocation: Invocation) -> None:
    """List the watermark groups. Each with its sources and tolerance."""
    with invocation.client() as client:
        rows = client.watermark_groups()
    invocation.show(rows, render.group_list)
