"""Commands on sources: gates for bulk loads, limits on their silence, idle marks, and the alerts that follow."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

import typer

from pytrickle.catalog.silence_limits import Limits
from pytrickle.cli import values
from pytrickle.cli.command import Invocation, command, root_options
from pytrickle.cli.show import render_sources as render
from pytrickle.readable import counted

app = typer.Typer()
source_app = typer.Typer(help="Sources: gates, silence, and what they fill.", no_args_is_help=True)
source_app.callback()(root_options)


class OnStale(StrEnum):
    """What follows when a source is stale."""

    WARN = "warn"
    HOLD = "hold"


class OnDoubt(StrEnum):
    """What follows when a new watermark is doubtful."""

    WARN = "warn"
    ERROR = "error"


Source = Annotated[str, typer.Argument(help="The source table; with its schema if outside the search path.")]
StaleAfter = Annotated[
    timedelta | None,
    typer.Option(
        parser=values.duration, metavar="DURATION", help="A source whose loader was not seen for longer is stale."
    ),
]
OnStaleChoice = Annotated[
    OnStale | None,
    typer.Option(
        "--on-stale", case_sensitive=False, help="A stale source raises an alert (warn) or also gates (hold)."
    ),
]
IdleAfter = Annotated[
    timedelta | None,
    typer.Option(parser=values.duration, metavar="DURATION", help="Groups go on without a source not seen for longer."),
]


def given_limits(stale_after: timedelta | None, on_stale: OnStale | None, idle_after: timedelta | None) -> Limits:
    """Return those limits that were given."""
    limits: Limits = {}
    if stale_after is not None:
        limits["stale_after"] = stale_after
    if on_stale is not None:
        limits["on_stale"] = on_stale.value
    if idle_after is not None:
        limits["idle_after"] = idle_after
    return limits


@command(app, "gate", example="pytrickle gate orders --reason 'reload of 2025'")
def gate(
    invocation: Invocation,
    source: Source,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why; shown to whoever asks what it waits for.")
    ] = None,
) -> None:
    """Hold what is made of a source. No tick refreshes it until the source is ungated."""
    with invocation.client() as client:
        client.gate_source(source, reason)
    invocation.show({"source": source, "reason": reason}, lambda _: f"Gated {source}.")


@command(app, "ungate", example="pytrickle ungate orders")
def ungate(invocation: Invocation, source: Source) -> None:
    """Let go what is made of a source. The refresher is woken."""
    with invocation.client() as client:
        client.ungate_source(source)
    invocation.show({"source": source}, lambda _: f"Ungated {source}.")


@command(app, "gates", example="pytrickle gates")
def gates(invocation: Invocation) -> None:
    """List the sources under a gate. Each with who gated it, why, and what waits for it."""
    with invocation.client() as client:
        rows = client.source_gates()
    invocation.show(rows, lambda rows: render.gates(rows) if rows else "No source is gated.")


@command(app, "alerts", example="pytrickle alerts --limit 5")
def alerts(
    invocation: Invocation,
    limit: Annotated[int, values.limit("incidents")] = 20,
) -> None:
    """Show incidents. The open ones, then those that ended, newest first."""
    with invocation.client() as client:
        rows = client.alerts(limit)
    invocation.show(rows, lambda rows: render.alerts(rows) if rows else "No incident.")


@command(source_app, "limits", example="pytrickle source limits orders --stale-after 2h --on-stale hold")
def limits(
    invocation: Invocation,
    source: Source,
    stale_after: StaleAfter = None,
    on_stale: OnStaleChoice = None,
    idle_after: IdleAfter = None,
    no_limits: Annotated[
        bool, typer.Option("--no-limits", help="Remove the limits of the source: its groups decide.")
    ] = False,
) -> None:
    """Show the limits of a source, or set them. What is set replaces all before; what is left out its groups decide."""
    limits = given_limits(stale_after, on_stale, idle_after)
    if no_limits and limits:
        raise typer.BadParameter("Either set limits or remove them; leave --no-limits out, or the others.")
    if on_stale is not None and stale_after is None:
        raise typer.BadParameter("--on-stale says what follows --stale-after; give that too.")
    if no_limits or limits:
        with invocation.client() as client:
            client.set_source_limits(source, **limits)
        done = f"{'Removed' if no_limits else 'Set'} the limits of {source}."
        invocation.show({"source": source, **limits}, lambda _: done)
    else:
        _show_limits(invocation, source)


def _show_limits(invocation: Invocation, source: str) -> None:
    """Show the limits of a source and of its groups."""
    with invocation.reports() as reports:
        rows = reports.source_limits(source)
    nothing = f"{source} has no limits, and its groups have none."
    invocation.show(rows, lambda rows: render.limits(rows) if rows else nothing)


@command(source_app, "checks", example="pytrickle source checks orders --max-ahead 30d --on-doubt error")
def checks(
    invocation: Invocation,
    source: Source,
    max_ahead: Annotated[
        timedelta,
        typer.Option(parser=values.duration, metavar="DURATION", help="A watermark further in the future is doubtful."),
    ] = "1d",  # type: ignore[assignment]
    on_doubt: Annotated[
        OnDoubt, typer.Option("--on-doubt", case_sensitive=False, help="Take it with a warning, or refuse it.")
    ] = OnDoubt.WARN,
) -> None:
    """Say what is probably a typo. New watermarks too far in the future, and those without a time zone.

    What is left out gets its default, whatever was set before.
    """
    with invocation.client() as client:
        client.set_watermark_checks(source, max_ahead, on_doubt.value)
    result = {"source": source, "max_ahead": max_ahead, "on_doubt": on_doubt.value}
    invocation.show(result, lambda _: f"Set the checks of {source}.")


@command(source_app, "idle", example="pytrickle source idle order_lines")
def idle(invocation: Invocation, source: Source) -> None:
    """Mark a source idle. Its watermark groups go on without it until its next advance."""
    with invocation.client() as client:
        client.mark_idle(source)
    invocation.show({"source": source}, lambda _: f"{source} is idle until its next advance.")


@command(source_app, "adopt", example="pytrickle source adopt orders_staging")
def adopt(invocation: Invocation, source: Source) -> None:
    """Put a table in the place of the dropped one of its name. In its watermark groups, with its gate and limits."""
    with invocation.client() as client:
        client.adopt_source(source)
    invocation.show({"source": source}, lambda _: f"{source} takes the place of the dropped one.")


@command(source_app, "forget", example="pytrickle source forget orders_staging")
def forget(
    invocation: Invocation, source: Annotated[str, typer.Argument(help="The name that the dropped table had.")]
) -> None:
    """Take a dropped table out of its watermark groups. A group without any other source is dropped."""
    with invocation.client() as client:
        groups = client.forget_source(source)
    done = f"Forgot {source}, which was in {counted(groups, 'watermark group')}."
    invocation.show({"source": source, "watermark_groups": groups}, lambda _: done)


@command(source_app, "status", example="pytrickle source status")
def status(invocation: Invocation) -> None:
    """Show how far a warehouse is filled. Every source with the stream tables made of it, and what they wait for."""
    with invocation.client() as client:
        rows = client.bootstrap_gate_status()
    invocation.show(rows, lambda rows: render.bootstrap(rows) if rows else "No source yet.")
