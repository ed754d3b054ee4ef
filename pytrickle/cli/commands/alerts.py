"""Commands on the limits beyond which an alert is raised: show, set, reset."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from pytrickle.catalog.alert_limits import AlertLimits
from pytrickle.cli import values
from pytrickle.cli.command import Invocation, command, root_options
from pytrickle.cli.show import render_freshness as render

app = typer.Typer(help="Limits beyond which an alert is raised.", no_args_is_help=True)
app.callback()(root_options)

Source = Annotated[
    str | None, typer.Option("--source", help="The limits of one source; with its schema if outside the search path.")
]
Group = Annotated[str | None, typer.Option("--group", help="The limits of one watermark group.")]


@command(app, "limits", example="pytrickle alert limits")
def limits(invocation: Invocation) -> None:
    """Show the limits. Those of all sources and groups, then those that some have instead."""
    with invocation.client() as client:
        rows = client.alert_limits()
    nothing = "No limits are set: pytrickle alert set sets the usual ones for all."
    invocation.show(rows, lambda rows: render.alert_limits(rows) if rows else nothing)


@command(app, "set", example="pytrickle alert set --source orders --lag 30h --off rate")
def set_limits(
    invocation: Invocation,
    source: Source = None,
    group: Group = None,
    lag: Annotated[
        timedelta | None,
        typer.Option(
            parser=values.duration,
            metavar="DURATION",
            help="How far a watermark may be behind the clock, and a stream table behind its sources (default: 5m).",
        ),
    ] = None,
    late_share: Annotated[
        float | None, typer.Option(help="Which share of the rows may come late (default: 0.05).")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Seconds of event time a watermark must gain per second (default: 0.5).")
    ] = None,
    idle_share: Annotated[
        float | None, typer.Option(help="Which share of a group's sources may be idle (default: 0.2).")
    ] = None,
    off: Annotated[
        list[str] | None, typer.Option("--off", metavar="LIMIT", help="Set no such limit; repeatable.")
    ] = None,
) -> None:
    """Set the limits of a source, of a group, or of all. What is left out gets its default, whatever was set before."""
    given = {"lag": lag, "late_share": late_share, "rate": rate, "idle_share": idle_share}
    if unknown := [name for name in off or () if name not in given]:
        raise typer.BadParameter(f"There is no limit {unknown[0]}; there are {', '.join(given)}.")
    chosen: AlertLimits = {}
    chosen.update({name: value for name, value in given.items() if value is not None})  # type: ignore[typeddict-item]
    chosen.update(dict.fromkeys(off or (), None))  # type: ignore[typeddict-item]
    with invocation.client() as client:
        client.set_alert_limits(source, group, **chosen)
    result = {"source": source, "group_name": group, **chosen}
    invocation.show(result, lambda _: f"Set the limits of {_named(source, group)}.")


@command(app, "reset", example="pytrickle alert reset --group order_pipeline")
def reset(invocation: Invocation, source: Source = None, group: Group = None) -> None:
    """Remove the limits of a source, of a group, or those of all. A source then goes by its groups, a group by all."""
    with invocation.client() as client:
        there = client.reset_alert_limits(source, group)
    done = f"Removed the limits of {_named(source, group)}." if there else f"{_named(source, group)} had none."
    invocation.show({"source": source, "group_name": group, "removed": there}, lambda _: done)


def _named(source: str | None, group: str | None) -> str:
    return source or (f"group {group}" if group else "all")
