"""Commands on feeds, which keep changes for whoever follows them: create, drop, advance, list."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from pytrickle.cli import values
from pytrickle.cli.command import Invocation, command, root_options
from pytrickle.cli.show import render_feeds

app = typer.Typer(help="Feeds: who follows the changes of a table.", no_args_is_help=True)
app.callback()(root_options)

Name = Annotated[str, typer.Argument(help="Name of the feed.")]


@command(app, "create", example="pytrickle feed create shipping orders --max-age 2d")
def create(
    invocation: Invocation,
    name: Name,
    relation: Annotated[str, typer.Argument(help="The table or stream table whose changes are to be kept.")],
    max_age: Annotated[
        timedelta,
        typer.Option(parser=values.duration, metavar="DURATION", help="How long a version may wait to be read."),
    ] = "7d",  # type: ignore[assignment]
    max_rows: Annotated[int, typer.Option(min=1, help="How many changes may wait to be read.")] = 10_000_000,
) -> None:
    """Keep the changes of a table for a reader. Beyond a limit it is cut off, and must read everything again."""
    with invocation.client() as client:
        client.create_feed(name, relation, max_age=max_age, max_rows=max_rows)
    result = {"feed": name, "relation": relation, "max_age": max_age, "max_rows": max_rows}
    invocation.show(result, lambda _: f"Created feed {name}.")


@command(app, "drop", example="pytrickle feed drop shipping")
def drop(invocation: Invocation, name: Name) -> None:
    """Forget a feed. Changes that nobody else needs are kept no longer."""
    with invocation.client() as client:
        client.drop_feed(name)
    invocation.show({"feed": name}, lambda _: f"Dropped feed {name}.")


@command(app, "advance", example="pytrickle feed advance shipping 12")
def advance(
    invocation: Invocation,
    name: Name,
    version: Annotated[int, typer.Argument(min=0, help="The version through which everything was read.")],
) -> None:
    """Say how far a feed was read. Changes through there are kept no longer for it."""
    with invocation.client() as client:
        client.advance_feed(name, version)
    invocation.show({"feed": name, "version": version}, lambda _: f"Feed {name} was read through version {version}.")


@command(app, "list", example="pytrickle feed list")
def list_feeds(invocation: Invocation) -> None:
    """List the feeds. Each with how far it was read, and how far it could be."""
    with invocation.client() as client:
        rows = client.feeds()
    invocation.show(rows, lambda rows: render_feeds.feeds(rows) if rows else "No feed yet.")
