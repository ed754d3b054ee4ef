"""Commands for definitions beside the code: plan, apply, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pytrickle.cli.command import Invocation, command
from pytrickle.cli.show import render_definitions

app = typer.Typer()

# What `plan` answers where there is something to do. Nothing else ends with it but wrong usage.
DIFFERENT = 2

Directory = Annotated[Path, typer.Argument(help="Directory with pytrickle.toml and the definitions.")]


@command(app, "plan", example="pytrickle plan definitions/")
def plan(invocation: Invocation, directory: Directory = Path()) -> None:
    """Show what definitions would change. Exit code 2 if that is anything, 0 if the database follows them.

    Nothing is changed, and no writer of a source waits. Python files of the project are run.
    """
    with invocation.client() as client:
        found = client.plan(directory)
    invocation.show(found.data(), render_definitions.planned)
    if found:
        raise typer.Exit(DIFFERENT)


@command(app, "apply", example="pytrickle apply definitions/")
def apply(
    invocation: Invocation,
    directory: Directory = Path(),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do it, show it, and take it back.")] = False,
) -> None:
    """Make the database follow definitions. One transaction: all of it, or nothing.

    Stream tables and groups that the project defined before and does not any more are dropped; nobody else's ever are.
    A dry run fails where `apply` would fail; writers of sources wait for it as they do for `apply`.
    """
    with invocation.client() as client:
        found = client.apply(directory, dry_run=dry_run)
    invocation.show(found.data(), render_definitions.planned if dry_run else render_definitions.applied)


@command(app, "export", example="pytrickle export shop definitions/")
def export(
    invocation: Invocation,
    project: Annotated[str, typer.Argument(help="Name of the project, which owns what is written once it is applied.")],
    directory: Annotated[Path, typer.Argument(help="Directory to write into.")],
) -> None:
    """Write what there is as definitions. What other projects own is left out."""
    with invocation.client() as client:
        files = client.export(project, directory)
    names = [str(path) for path in files]
    invocation.show(names, lambda written: "\n".join(written))
