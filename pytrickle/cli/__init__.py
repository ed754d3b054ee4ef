"""The command line: a thin command per client method."""

from __future__ import annotations

import gc
import sys
from typing import Annotated

import typer

from pytrickle.cli.command import Dsn, Json, root_options
from pytrickle.cli.documents import show_json_error
from pytrickle.cli.tree import LazyGroup

app = typer.Typer(
    name="pytrickle",
    cls=LazyGroup,
    no_args_is_help=True,
    # Rich tracebacks can show local variables, among them connection strings.
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

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
    try:
        if "--json" in sys.argv:
            sys.exit(_run_with_json_errors())
        app(prog_name="pytrickle")
    finally:
        # Else the interpreter, before it ends, looks for cycles in all that was loaded: a tenth of a small command.
        gc.freeze()


def _run_with_json_errors() -> int:
    """Run a command whose wrong usage is told as JSON, too; return its exit code."""
    try:
        return app(prog_name="pytrickle", standalone_mode=False) or 0
    except typer.TyperException as error:
        show_json_error(error.format_message(), "Add --help to see what the command takes.", "UsageError", None)
        return error.exit_code
    except typer.Abort:
        return 1
