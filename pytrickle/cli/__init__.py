"""The command line: a thin command per client method."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from errno import EPIPE
from io import TextIOWrapper
from typing import Annotated

import typer

from pytrickle.cli.command import Dsn, Json, root_options
from pytrickle.cli.documents import show_json_error
from pytrickle.cli.tree import LazyGroup

app = typer.Typer(
    name="pytrickle",
    cls=LazyGroup,
    context_settings={"help_option_names": ["--help", "-h"]},
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
    """Stream tables for plain PostgreSQL: refreshed differentially by PostgreSQL or Spark, gated by watermarks."""
    root_options(context, dsn, as_json)


def main() -> None:
    """Run the command line on the process's arguments and exit with its code."""
    as_json = "--json" in sys.argv
    _open_what_is_closed()
    try:
        _refuse_what_is_no_text(sys.argv, as_json=as_json)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                # A name may have letters that the encoding of a terminal or a pipe lacks.
                stream.reconfigure(errors="backslashreplace")
        if as_json:
            sys.exit(_run_with_json_errors())
        app(prog_name="pytrickle")
    except OSError as error:
        sys.exit(_failed_output(error, as_json=as_json))
    except KeyboardInterrupt:
        # As Typer ends a command that it already runs.
        sys.exit(130)
    finally:
        # Else the interpreter, before it ends, looks for cycles in all that was loaded: a tenth of a small command.
        gc.freeze()


def _open_what_is_closed() -> None:
    """Let nobody read what is written to an output that the caller has closed: Python has no stream for it then."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def _refuse_what_is_no_text(arguments: Sequence[str], *, as_json: bool) -> None:
    """End with exit code 2 where an argument has bytes that are no text, which no database could be told."""
    if any("\udc80" <= character <= "\udcff" for argument in arguments for character in argument):
        _tell("An argument has bytes that are no text.", "Write it in UTF-8.", "UsageError", as_json=as_json)
        sys.exit(2)


def _failed_output(error: OSError, *, as_json: bool) -> int:
    """Say that a file or the output could not be written, unless nobody reads that any more; return the exit code."""
    # What is left in the buffer would fail again when the interpreter ends.
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if error.errno != EPIPE:
        reason = f"{error.strerror or error}: {error.filename}" if error.filename else str(error.strerror or error)
        hint = "See whether the path is right, whether you may write there, and whether there is room."
        _tell(f"The operating system refused it: {reason}.", hint, type(error).__name__, as_json=as_json)
    return 1


def _tell(message: str, hint: str | None, kind: str, *, as_json: bool) -> None:
    if as_json:
        show_json_error(message, hint, kind, None)
        return
    for line in (f"error: {message}", *((f"hint: {hint}",) if hint else ())):
        typer.echo(line, err=True)


def _run_with_json_errors() -> int:
    """Run a command whose wrong usage is told as JSON, too; return its exit code."""
    try:
        return app(prog_name="pytrickle", standalone_mode=False) or 0
    except typer.TyperException as error:
        show_json_error(error.format_message(), "Add --help to see what the command takes.", "UsageError", None)
        return error.exit_code
    except typer.Abort:
        return 1
