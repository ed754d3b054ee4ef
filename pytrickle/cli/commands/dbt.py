"""Commands for users of dbt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pytrickle.cli.command import Invocation, command

app = typer.Typer(help="dbt: stream tables as models.", no_args_is_help=True)


@command(app, "init", example="pytrickle dbt init --project-dir shop_dbt")
def init(
    invocation: Invocation,
    project_dir: Annotated[
        Path,
        typer.Option(help="The project's directory: where its dbt_project.yml is.", show_default="the current one"),
    ] = Path(),
) -> None:
    """Have a dbt project use the macros of pytrickle: write them into its packages.yml."""
    from pytrickle.integrations.dbt import add_package

    written = add_package(project_dir)
    invocation.show({"packages": str(written)}, lambda _: f"{written} names the macros now. Next: dbt deps")


@command(app, "path", example="PYTRICKLE_DBT_PACKAGE=$(pytrickle dbt path) dbt deps")
def path(invocation: Invocation) -> None:
    """Print the directory of the macros, for a packages.yml that was written on another machine."""
    from pytrickle.integrations.dbt import PACKAGE

    invocation.show({"path": str(PACKAGE)}, lambda _: str(PACKAGE))
