"""The command that shows where everything stands: status."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

import typer

from pytrickle.catalog.reports import Status, StreamTableStatus
from pytrickle.catalog.table_state import state_of
from pytrickle.cli import values
from pytrickle.cli.command import UNHEALTHY, Invocation, command

app = typer.Typer()

FACTORS = {"hot": 1, "warm": 2, "cold": 10}


class Trouble(StrEnum):
    """What `status --fail-on` can look for."""

    GATED = "gated"
    STALE = "stale"
    ERROR = "error"


@command(app, "status", example="pytrickle status --fail-on gated --fail-on error")
def status(
    invocation: Invocation,
    fail_on: Annotated[
        list[Trouble] | None, typer.Option("--fail-on", help="Exit with code 3 if a stream table is in this state.")
    ] = None,
    max_age: Annotated[
        timedelta | None,
        typer.Option(
            parser=values.duration, metavar="DURATION", help="What lacks a change for longer is stale, such as 10m."
        ),
    ] = None,
) -> None:
    """Show groups, sources and stream tables. Each is on one screen with its state and the reason for it.

    A stream table is stale if it was never filled, or lacks a change of its sources for longer than --max-age or,
    without that, than its schedule; one whose sources have nothing new is not.
    """
    with invocation.reports() as reports:
        state = reports.status()
    from pytrickle.cli.show import render

    invocation.show(state, render.status)
    if set(fail_on or ()) & _troubles(state, max_age):
        raise typer.Exit(UNHEALTHY)


def _troubles(state: Status, max_age: timedelta | None) -> set[Trouble]:
    """Return which troubles some stream table is in."""
    found = {Trouble.ERROR for problem in state.problems if problem.lasting}
    behind = {row.pgt_id: row.lag for row in state.freshness}
    for row in state.stream_tables:
        named = state_of(row)
        if named == "error":
            found.add(Trouble.ERROR)
        if row.decision != "run":
            found.add(Trouble.GATED)
        allowed = max_age or _period(row)
        if row.staleness is None or (allowed is not None and behind.get(row.pgt_id, row.staleness) > allowed):
            found.add(Trouble.STALE)
    return found


def _period(row: StreamTableStatus) -> timedelta | None:
    """Return the interval between its refreshes; None where there is none, or ticks leave it out."""
    if row.paused or row.tier not in FACTORS:
        return None
    try:
        return FACTORS[row.tier] * values.duration(row.schedule)
    except typer.BadParameter:
        return None
