"""Commands on stream tables: create, alter, drop, explain, verify."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from pytrickle.catalog.options import Options
from pytrickle.cli import options
from pytrickle.cli.activity import activity
from pytrickle.cli.command import UNHEALTHY, Invocation, command
from pytrickle.cli.console import progress
from pytrickle.cli.show import render
from pytrickle.cli.show.folded import for_terminal

if TYPE_CHECKING:
    from pytrickle.client.client import Client
    from pytrickle.inspect.verify import VerifyResult

app = typer.Typer()

Name = Annotated[str, typer.Argument(help="Name of the stream table; with its schema if outside the search path.")]


@command(
    app,
    "create",
    example="pytrickle create totals 'SELECT region, sum(amount) FROM orders GROUP BY region'",
    takes=options.parameters(at_creation=True),
)
def create(
    invocation: Invocation,
    name: Annotated[str, typer.Argument(help="Name of the new stream table.")],
    query: Annotated[str | None, typer.Argument(help="The defining query.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the query from a file; - is stdin.")] = None,
    initialize: Annotated[bool, typer.Option("--initialize", help="Fill it before the command ends.")] = False,
    **settings: Unpack[Options],
) -> None:
    """Create a stream table from its query. The next tick fills it, or the command itself with --initialize."""
    chosen = options.given(settings)
    text = _query(query, file)
    with invocation.client() as client, activity(f"creating {name}", as_json=invocation.as_json):
        client.create_stream_table(name, text, **chosen)
        filled = client.refresh(name) if initialize else None
    if filled is None:
        invocation.show({"stream_table": name}, lambda _: f"Created stream table {name}; the next tick fills it.")
    else:
        invocation.show(filled, render.result)


@command(
    app,
    "alter",
    example="pytrickle alter totals --watermark-gating hold_back",
    takes=options.parameters(at_creation=False),
)
def alter(
    invocation: Invocation,
    name: Name,
    query: Annotated[str | None, typer.Argument(help="Another defining query, with the same columns.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the query from a file; - is stdin.")] = None,
    *,
    reset: options.Reset = None,
    **settings: Unpack[Options],
) -> None:
    """Change a stream table's query or settings. The change takes effect at the next tick."""
    chosen = options.given(settings)
    text = _query(query, file) if query is not None or file is not None else None
    if not chosen and not reset and text is None:
        raise typer.BadParameter("Nothing to change; give a query or at least one option.")
    with invocation.client() as client:
        client.alter_stream_table(name, query=text, reset=reset or [], **chosen)
    invocation.show({"stream_table": name, **chosen}, lambda _: f"Altered stream table {name}.")


@command(app, "drop", example="pytrickle drop totals")
def drop(
    invocation: Invocation,
    name: Name,
    cascade: Annotated[bool, typer.Option("--cascade", help="Drop the stream tables that read it as well.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Drop a stream table. Its sources stay as they are. On a terminal it asks before."""
    with invocation.client() as client:
        if not yes and sys.stdin.isatty():
            also = " and all that read it" if cascade else ""
            typer.confirm(f"Drop stream table {name}{also}?", abort=True, err=True)
        client.drop_stream_table(name, cascade=cascade)
    invocation.show({"stream_table": name}, lambda _: f"Dropped stream table {name}.")


@command(app, "explain", example="pytrickle explain totals")
def explain(
    invocation: Invocation,
    name: Annotated[str | None, typer.Argument(help="Name of the stream table.")] = None,
    query: Annotated[str | None, typer.Option("--query", help="Explain a query before a table is made of it.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read that query from a file; - is stdin.")] = None,
    with_sql: Annotated[bool, typer.Option("--sql", help="Also show the SQL that is run.")] = False,
) -> None:
    """Explain how a stream table is refreshed. Its delta plan, where each part runs, its gating, why FULL if FULL.

    With --query or --file, how one of that query would be; nothing is created. Exit code 3 if not differentially.
    """
    if name is not None and (query is not None or file is not None):
        raise typer.BadParameter("Give either the name of a stream table, or a query.")
    with invocation.client() as client:
        explanation = client.explain(name) if name is not None else client.explain(query=_query(query, file))
    text = for_terminal(explanation.text)
    invocation.show(explanation.data, lambda _: f"{text}\n{explanation.sql}" if with_sql else text)
    if name is None and not explanation.data["differential"]:
        raise typer.Exit(UNHEALTHY)


@command(app, "verify", example="pytrickle verify totals")
def verify(
    invocation: Invocation,
    names: Annotated[list[str] | None, typer.Argument(help="Stream tables to verify; all without a name.")] = None,
) -> None:
    """Compare tables with their queries. Exit code 3 if a row is missing or unexpected, or one cannot be compared.

    One that is to be computed anew is pending and not compared; one that was never filled matches if it is empty.
    Without names a broken table does not keep the others from being compared.
    """
    from pytrickle.inspect.verify import verify_each

    with invocation.client() as client:
        if names:
            results = tuple(_verified(client, name) for name in names)
        else:
            every = (table.stream_table for table in client.stream_tables())
            results = verify_each(every, partial(_verified, client))
    invocation.show(results, render.verified)
    if not all(result.matches or result.pending for result in results):
        raise typer.Exit(UNHEALTHY)


def _verified(client: Client, name: str) -> VerifyResult:
    with progress(f"verifying {name}"):
        return client.verify(name)


def _query(query: str | None, file: Path | None) -> str:
    if (query is None) == (file is None):
        raise typer.BadParameter("Give the defining query either by itself or with --file.")
    if file is None:
        return query or ""
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise typer.BadParameter(f"{file} cannot be read: {reason}.") from None
