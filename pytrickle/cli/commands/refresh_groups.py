"""Commands on refresh groups, whose stream tables are refreshed together, and on fuses: refresh-group …, reset-fuse."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pytrickle.cli.command import Invocation, command
from pytrickle.cli.show import render

app = typer.Typer(no_args_is_help=True, help="Stream tables that refresh together.")
fuses = typer.Typer()

Name = Annotated[str, typer.Argument(help="Name of the refresh group.")]


class Isolation(StrEnum):
    """Whether members are committed together."""

    REPEATABLE_READ = "repeatable_read"
    READ_COMMITTED = "read_committed"


@command(app, "create", example="pytrickle refresh-group create dashboard totals order_count")
def create(
    invocation: Invocation,
    name: Name,
    members: Annotated[list[str], typer.Argument(help="Its stream tables, two or more.")],
    isolation: Annotated[
        Isolation, typer.Option("--isolation", help="repeatable_read commits all at once, read_committed one by one.")
    ] = Isolation.REPEATABLE_READ,
) -> None:
    """Have stream tables refreshed together. In one transaction, or not at all."""
    with invocation.client() as client:
        client.create_refresh_group(name, members, isolation.value)
    result = {"group_name": name, "members": members, "isolation": isolation.value}
    invocation.show(result, lambda _: f"Created refresh group {name}.")


@command(app, "drop", example="pytrickle refresh-group drop dashboard")
def drop(invocation: Invocation, name: Name) -> None:
    """Drop a refresh group. Its stream tables are refreshed on their own again."""
    with invocation.client() as client:
        client.drop_refresh_group(name)
    invocation.show({"group_name": name}, lambda _: f"Dropped refresh group {name}.")


@command(app, "list", example="pytrickle refresh-group list")
def list_groups(invocation: Invocation) -> None:
    """List the refresh groups. Each with its stream tables."""
    with invocation.client() as client:
        rows = client.refresh_groups()
    invocation.show(rows, render.refresh_group_list)


@command(fuses, "reset-fuse", example="pytrickle reset-fuse totals")
def reset_fuse(
    invocation: Invocation,
    name: Annotated[str, typer.Argument(help="Name of the stream table; with its schema if outside the search path.")],
    reinitialize: Annotated[bool, typer.Option("--reinitialize", help="Compute it anew instead.")] = False,
) -> None:
    """Let a delta pass that the fuse holds. Or have the stream table computed anew."""
    action = "reinitialize" if reinitialize else "apply"
    with invocation.client() as client:
        client.reset_fuse(name, action)
    invocation.show({"stream_table": name, "action": action}, lambda _: f"Reset the fuse of {name}.")
