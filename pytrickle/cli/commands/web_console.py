"""The command that shows everything on a web page: console."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pytrickle.cli.command import Invocation, command
from pytrickle.cli.log import LogFormat, LogLevel, logged
from pytrickle.cli.values import address
from pytrickle.errors import PackageMissing

app = typer.Typer()


@command(app, "console", example="pytrickle console --listen 127.0.0.1:8080")
def console(
    invocation: Invocation,
    listen: Annotated[
        str, typer.Option("--listen", metavar="ADDRESS", help="Where to serve it: a port, or a host and a port.")
    ] = "127.0.0.1:8080",
    allowed_host: Annotated[
        list[str] | None,
        typer.Option("--allowed-host", metavar="NAME", help="A further name under which browsers reach it."),
    ] = None,
) -> None:
    """Show everything on a web page, which only reads. The graph, histories, watermarks, late data, alerts, feeds.

    It reads with the rights of the role that connects. On an address of this machine alone it asks for nothing; on any
    other it wants a token, which is printed with the address to open. SIGTERM or Ctrl-C ends it.
    """
    where = address(listen)
    try:
        from pytrickle.console.serve import serve
    except ImportError as error:
        hint = "Install them: pip install 'pytrickle-postgres[console]'."
        raise PackageMissing("The console needs starlette, uvicorn and jinja2.", hint) from error

    def tell(url: str) -> None:
        invocation.show({"url": url}, lambda _: f"The console is at {url}")
        sys.stdout.flush()

    with logged(LogFormat.JSON if invocation.as_json else LogFormat.TEXT, LogLevel.INFO):
        serve(invocation.dsn, where, tuple(allowed_host or ()), tell)
