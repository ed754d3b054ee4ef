"""The command line: a thin command per client method."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from pytrickle.cli.command import Dsn, Json, root_options
from pytrickle.cli.commands import (
    advice,
    alerts,
    dag,
    dbt,
    definitions,
    extension,
    feeds,
    freshness,
    groups,
    late,
    metrics,
    operations,
    refresh_groups,
    refreshes,
    run,
    schedules,
    sources,
    stream_tables,
    top,
    watermarks,
    web_console,
)
from pytrickle.cli.console import show_json_error

app = typer.Typer(
    name="pytrickle",
    no_args_is_help=True,
    # Rich tracebacks can show local variables, among them connection strings.
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for noun in (
    operations,
    stream_tables,
    refreshes,
    run,
    top,
    schedules,
    sources,
    late,
    freshness,
    dag,
    web_console,
    advice,
    extension,
    definitions,
):
    app.add_typer(noun.app)
app.add_typer(metrics.app)
app.add_typer(refresh_groups.fuses)
app.add_typer(watermarks.app, name="watermark")
app.add_typer(groups.app, name="group")
app.add_typer(alerts.app, name="alert")
app.add_typer(refresh_groups.app, name="refresh-group")
app.add_typer(feeds.app, name="feed")
app.add_typer(sources.source_app, name="source")
app.add_typer(dbt.app, name="dbt")


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    try:
        typer.echo(f"pytrickle {version('pytrickle-postgres')}")
    except PackageNotFoundError:
        typer.echo("pytrickle (not installed as a package)")
    raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
]


EXIT_CODES = (
    "Exit codes: 0 done, 1 error, 2 wrong usage (of plan also: the database differs), 3 a check found something stale"
    " or unhealthy."
)


@app.callback(epilog=EXIT_CODES)
def root(context: typer.Context, dsn: Dsn = None, as_json: Json = False, show_version: Version = False) -> None:
    """Stream tables for plain PostgreSQL: refreshed differentially by Spark, gated by watermarks."""
    root_options(context, dsn, as_json)


def main() -> None:
    """Run the command line on the process's arguments and exit with its code."""
    if "--json" not in sys.argv:
        app(prog_name="pytrickle")
    try:
        code = app(prog_name="pytrickle", standalone_mode=False)
    except typer.TyperException as error:
        show_json_error(error.format_message(), "Add --help to see what the command takes.", "UsageError", None)
        code = error.exit_code
    except typer.Abort:
        code = 1
    sys.exit(code)
