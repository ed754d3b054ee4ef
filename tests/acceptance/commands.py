"""Commands run on a database, in this process."""

from collections.abc import Callable
from typing import Any

from typer.testing import CliRunner

from pytrickle.cli import app

Run = Callable[..., Any]


def commands(dsn: str) -> Run:
    """Return what runs a command on a database, in this process."""
    return lambda *arguments: CliRunner().invoke(
        app, ["--dsn", dsn, *arguments], prog_name="pytrickle", catch_exceptions=False
    )
