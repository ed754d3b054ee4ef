"""Commands run on a database, in this process."""

from collections.abc import Callable
from typing import Any

from click.testing import CliRunner
from typer.main import get_command

from pytrickle.cli import app

Run = Callable[..., Any]
COMMAND = get_command(app)


def commands(dsn: str) -> Run:
    """Return what runs a command on a database, in this process."""
    return lambda *arguments: CliRunner().invoke(
        COMMAND, ["--dsn", dsn, *arguments], prog_name="pytrickle", catch_exceptions=False
    )
