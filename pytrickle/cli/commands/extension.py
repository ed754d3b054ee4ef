"""The command for who comes from the extension pg_trickle: import-from-pg-trickle."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from pytrickle.cli.command import Invocation, command
from pytrickle.config import Settings
from pytrickle.database import connect

app = typer.Typer()


@command(app, "import-from-pg-trickle", example="pytrickle import-from-pg-trickle --dsn dbname=old > calls.sql")
def import_from_pg_trickle(
    invocation: Invocation,
    dump: Annotated[
        typer.FileBinaryRead | None,
        typer.Option(help="Read the catalog from a plain dump (pg_dump) instead of a server; - is stdin."),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OID=NAME",
            help="What a table is called that a dump has as a number: 16385=public.orders; 16385= leaves it out.",
        ),
    ] = None,
) -> None:
    """Print calls that recreate what pg_trickle holds. Nothing is changed.

    Its stream tables, watermark groups, watermarks, gates, refresh groups and subscriptions become one transaction.
    """
    from pytrickle.extension import contents, dumped_tables, live_tables, script

    named = dict(map(_named, source or ()))
    if dump is not None:
        tables = dumped_tables(dump, named)
    else:
        with connect(Settings.from_environment(invocation.dsn).dsn, role="import") as connection:
            tables = live_tables(connection)
    text = script(contents(tables))
    invocation.show({"sql": text}, lambda _: text.rstrip("\n"))


def _named(text: str) -> tuple[int, str]:
    found = re.fullmatch(r"(\d+)=(.*)", text)
    if not found:
        raise typer.BadParameter(f"Write --source as 16385=public.orders, not {text}.")
    return int(found[1]), found[2]
