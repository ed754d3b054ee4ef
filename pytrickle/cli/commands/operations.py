"""Commands on an installation as a whole: install, uninstall, doctor, demo."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated

import typer

from pytrickle.catalog import install as migrate
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

    Without --dsn it starts a PostgreSQL server of its own and removes it at the end. With it, it installs the catalog
    there, works in a schema pytrickle_demo, which it drops at the end, and refreshes no other stream table.
    """
    from pytrickle.cli.show.columns import columns
    from pytrickle.demo.run import run_demo

    played = DEMO_DURATION if duration is None else duration
    raise typer.Exit(run_demo(invocation.dsn, played, invocation.as_json, columns, engine))


def _dsn(invocation: Invocation) -> str:
    return Settings.from_environment(invocation.dsn).dsn
