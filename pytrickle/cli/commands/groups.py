"""Commands on watermark groups: create, alter, drop, status, list."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from pytrickle.catalog.silence_limits import tolerance_of_a_kind
from pytrickle.cli import values
from pytrickle.cli.command import Invocation, command, root_options
from pytrickle.cli.commands.sources import IdleAfter, OnStaleChoice, StaleAfter, given_limits
from pytrickle.cli.show import render

app = typer.Typer(help="Watermark groups: sources that must agree.", no_args_is_help=True)
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
BatchTolerance = Annotated[
    int | None,
    typer.Option(min=0, metavar="BATCHES", help="How many batches apart; the group goes by batch numbers."),
]
Reset = Annotated[
    list[str] | None,
    typer.Option("--reset", metavar="OPTION", help="Give an option of the group its default again; repeatable."),
]


@command(app, "create", example="pytrickle group create order_pipeline orders order_lines --tolerance '30 seconds'")
def create(
    invocation: Invocation,
    name: Name,
    sources: Annotated[list[str], typer.Argument(help="The source tables whose watermarks must agree.")],
    tolerance: Tolerance = None,
    batch_tolerance: BatchTolerance = None,
    stale_after: StaleAfter = None,
    on_stale: OnStaleChoice = None,
    idle_after: IdleAfter = None,
) -> None:
    """Create a watermark group. It has one source or more; without --tolerance their watermarks must be equal.

    With --batch-tolerance it goes by batch numbers, otherwise by event time.
    """
    apart = _one_of(tolerance, batch_tolerance)
    apart = timedelta(0) if apart is None else apart
    limits = given_limits(stale_after, on_stale, idle_after)
    with invocation.client() as client:
        client.create_watermark_group(name, sources, tolerance=apart, **limits)
    result = {"group_name": name, "sources": sources, **tolerance_of_a_kind(apart), **limits}
    invocation.show(result, lambda _: f"Created watermark group {name}.")


@command(app, "alter", example="pytrickle group alter order_pipeline --tolerance 1m")
def alter(
    invocation: Invocation,
    name: Name,
    sources: Annotated[
        list[str] | None, typer.Option("--source", help="A source of the group; repeat it to give the whole new list.")
    ] = None,
    tolerance: Tolerance = None,
    batch_tolerance: BatchTolerance = None,
    stale_after: StaleAfter = None,
    on_stale: OnStaleChoice = None,
    idle_after: IdleAfter = None,
    reset: Reset = None,
) -> None:
    """Change a group's sources, tolerance or limits. The change takes effect at the next tick."""
    limits = given_limits(stale_after, on_stale, idle_after)
    apart = _one_of(tolerance, batch_tolerance)
    if not (sources or limits or reset) and apart is None:
        raise typer.BadParameter("Nothing to change; give --source, --tolerance, a limit or --reset.")
    cleared = {"reset": reset} if reset else {}
    with invocation.client() as client:
        client.alter_watermark_group(name, sources=sources or None, tolerance=apart, **limits, **cleared)
    result = {"group_name": name, "sources": sources, **tolerance_of_a_kind(apart), **limits}
    invocation.show(result, lambda _: f"Altered watermark group {name}.")


@command(app, "drop", example="pytrickle group drop order_pipeline")
def drop(invocation: Invocation, name: Name) -> None:
    """Drop a watermark group. Its sources and their watermarks stay."""
    with invocation.client() as client:
        client.drop_watermark_group(name)
    invocation.show({"group_name": name}, lambda _: f"Dropped watermark group {name}.")


@command(app, "status", example="pytrickle group status order_pipeline")
def status(
    invocation: Invocation,
    name: Annotated[str | None, typer.Argument(help="Name of a watermark group; without it, all are shown.")] = None,
) -> None:
    """Show where the groups stand. Whether their sources agree, how far apart they are, who is waited for."""
    with invocation.client() as client:
        rows = client.watermark_status() if name is None else client.watermark_status(name)
    invocation.show(rows, lambda rows: render.groups(rows) if rows else "No watermark group yet.")


@command(app, "list", example="pytrickle group list")
def list_groups(invocation: Invocation) -> None:
    """List the watermark groups. Each with its sources and tolerance."""
    with invocation.client() as client:
        rows = client.watermark_groups()
    invocation.show(rows, render.group_list)


def _one_of(tolerance: timedelta | None, batch_tolerance: int | None) -> timedelta | int | None:
    if tolerance is not None and batch_tolerance is not None:
        raise typer.BadParameter("A group goes by event time or by batch numbers; give one tolerance.")
    return tolerance if batch_tolerance is None else batch_tolerance
