"""Commands on an installation as a whole: install, uninstall, status, doctor, demo."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

import typer

from pytrickle.catalog import install as migrate
from pytrickle.catalog.reports import Status, StreamTableStatus
from pytrickle.catalog.table_state import state_of
from pytrickle.cli import values
from pytrickle.cli.command import UNHEALTHY, Invocation, command
from pytrickle.cli.console import progress
from pytrickle.cli.show import render
from pytrickle.compute.spark.java import find_java, has_spark
from pytrickle.config import EngineName, Settings
from pytrickle.database import connect
from pytrickle.inspect.doctor import spark as spark_probe
from pytrickle.inspect.doctor.examine import Probes, examine

app = typer.Typer()

DEMO_DURATION = timedelta(seconds=45)
FACTORS = {"hot": 1, "warm": 2, "cold": 10}


class Trouble(StrEnum):
    """What `status --fail-on` can look for."""

    GATED = "gated"
    STALE = "stale"
    ERROR = "error"


@command(app, "install", example="pytrickle install --dsn postgresql://localhost/shop")
def install(
    invocation: Invocation,
    print_sql: Annotated[bool, typer.Option("--print", help="Print the SQL instead of running it.")] = False,
    roles: Annotated[
        bool,
        typer.Option("--roles", help="Also create the group roles pytrickle_reader, _loader, _operator and _owner."),
    ] = False,
) -> None:
    """Install or upgrade the catalog. Says what it applied; when there is nothing to do, it does nothing."""
    if print_sql:
        script = migrate.render(roles=roles)
        invocation.show({"sql": script}, lambda _: script.rstrip("\n"))
        return
    with progress("installing the catalog"), connect(_dsn(invocation), role="install") as connection:
        applied = migrate.install(connection, roles=roles)
    text = "\n".join(f"Applied {name}." for name in applied) or "The catalog is up to date."
    invocation.show({"applied": applied}, lambda _: text)


@command(app, "uninstall", example="pytrickle uninstall --yes")
def uninstall(
    invocation: Invocation,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove the catalog from a database. Watermarks and change buffers go with it; stream tables stay as tables."""
    if not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter("Add --yes: there is no terminal to ask on.")
        typer.confirm("Remove pytrickle's catalog from this database?", abort=True, err=True)
    with progress("removing the catalog"), connect(_dsn(invocation), role="install") as connection:
        migrate.uninstall(connection)
    invocation.show({"uninstalled": True}, lambda _: "Removed the catalog.")


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
    invocation.show(state, render.status)
    if set(fail_on or ()) & _troubles(state, max_age):
        raise typer.Exit(UNHEALTHY)


@command(app, "doctor", example="pytrickle doctor --spark")
def doctor(
    invocation: Invocation,
    spark: Annotated[bool, typer.Option("--spark", help="Also start Spark and let it read a snapshot.")] = False,
) -> None:
    """Check the machine, server and catalog. Every problem comes with its remedy, and with exit code 3."""
    settings = Settings.from_environment(invocation.dsn)
    probes = Probes(
        find_java=_for_spark(find_java),
        find_jar=_for_spark(lambda: spark_probe.find_jar(settings)),
        find_archive=_for_spark(lambda: spark_probe.find_archive(settings)),
        verify_catalog=migrate.verify,
        trust=migrate.trust,
        grants=migrate.grants,
        read_pinned=(lambda: spark_probe.read_pinned(settings)) if spark else None,
    )
    with progress("examining"):
        checks = tuple(examine(settings.dsn, probes))
    invocation.show(checks, render.checks)
    if not all(check.ok for check in checks):
        raise typer.Exit(UNHEALTHY)


def _for_spark(look: Callable[[], str]) -> Callable[[], str]:
    """Look for what only Spark needs where there is a Spark."""
    return look if has_spark() else lambda: "not needed, for PySpark is not installed: PostgreSQL computes"


@command(app, "demo", example="pytrickle demo --duration 30s")
def demo(
    invocation: Invocation,
    duration: Annotated[
        timedelta | None,
        typer.Option(
            parser=values.duration, metavar="DURATION", help="How long the loaders run (default: 45 seconds)."
        ),
    ] = None,
    engine: Annotated[EngineName, typer.Option("--engine", help="Who computes the reports.")] = EngineName.SPARK,
) -> None:
    """Watch gate and hold_back at work. A web shop's order lines arrive later than its orders.

    Without --dsn it starts a PostgreSQL server of its own and removes it at the end.
    """
    from pytrickle.demo import run_demo

    played = DEMO_DURATION if duration is None else duration
    raise typer.Exit(run_demo(invocation.dsn, played, invocation.as_json, engine))


def _dsn(invocation: Invocation) -> str:
    return Settings.from_environment(invocation.dsn).dsn


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
