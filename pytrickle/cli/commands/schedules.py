"""Commands that keep ticks from stream tables and let them back: pause, resume."""

from __future__ import annotations

from typing import Annotated

import typer

from pytrickle.cli.command import Invocation, command

app = typer.Typer()

Name = Annotated[
    str | None, typer.Argument(help="Name of the stream table; with its schema if outside the search path.")
]
All = Annotated[bool, typer.Option("--all", help="All stream tables instead of one.")]


@command(app, "pause", example="pytrickle pause totals")
def pause(invocation: Invocation, name: Name = None, all_tables: All = False) -> None:
    """Have ticks leave out a stream table, or all. Until resumed; pytrickle refresh still refreshes it."""
    _one_or_all(name, all_tables)
    with invocation.client() as client:
        count = client.pause(name)
    invocation.show({"paused": count}, lambda _: _told("Paused", name, count, "is paused already"))


@command(app, "resume", example="pytrickle resume totals")
def resume(invocation: Invocation, name: Name = None, all_tables: All = False) -> None:
    """Have ticks take up a stream table again, or all. Also after it was suspended for failing repeatedly."""
    _one_or_all(name, all_tables)
    with invocation.client() as client:
        count = client.resume(name)
    invocation.show({"resumed": count}, lambda _: _told("Resumed", name, count, "was not paused"))


def _one_or_all(name: str | None, all_tables: bool) -> None:
    if (name is None) != all_tables:
        raise typer.BadParameter("Give either the name of a stream table or --all.")


def _told(done: str, name: str | None, count: int, otherwise: str) -> str:
    if name:
        return f"{done} stream table {name}." if count else f"Stream table {name} {otherwise}."
    return f"{done} {count} stream table{'' if count == 1 else 's'}."
