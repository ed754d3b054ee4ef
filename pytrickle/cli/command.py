"""What every command has in common: --dsn and --json in either place, and errors as sentences."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar, get_args

import typer

from pytrickle.cli.documents import show_json
from pytrickle.cli.remedies import on_the_command_line
from pytrickle.cli.values import BIGINT, up_to
from pytrickle.config import EngineName
from pytrickle.errors import NotYet, PytrickleError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pytrickle.client.client import Client
    from pytrickle.client.reports import Reports
    from pytrickle.refresh.values import RefreshResult

UNHEALTHY = 3

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

Dsn = Annotated[
    str | None,
    typer.Option(
        "--dsn",
        help="Connection string or URL of the database. Without it: PYTRICKLE_DSN, else PGHOST, PGSERVICE etc.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document; durations are in seconds.")]

Engine = Annotated[
    EngineName | None,
    typer.Option("--engine", help="Who computes; without it the setting PYTRICKLE_ENGINE, else auto."),
]


@dataclass(frozen=True, slots=True)
class Invocation:
    """What the command line said about the database and the form of the output.

    A `dsn` of None means PYTRICKLE_DSN, else the libpq environment.
    """

    dsn: str | None = None
    as_json: bool = False

    @contextmanager
    def client(self, **settings: Any) -> Iterator[Client]:
        """Open a client for the length of the block; settings that are None count as not given."""
        # Loading the engine takes as long as a small command; help and completion do without it.
        import pytrickle

        with pytrickle.connect(self.dsn, **settings) as client:
            yield client

    @contextmanager
    def reports(self) -> Iterator[Reports]:
        """Open what only reads the catalog, for the length of the block: it is there in half the time of a client."""
        from pytrickle.client.reports import open_reports

        with open_reports(self.dsn) as reports:
            if not self.as_json:
                # What draws the result is loaded while the database works on it.
                Thread(target=import_module, args=("pytrickle.cli.show.render",), daemon=True).start()
            yield reports

    def show(self, result: Result, render: Callable[[Result], RenderableType]) -> None:
        """Print a result on stdout: as JSON, or as `render` draws it for people."""
        if self.as_json:
            show_json(result)
        else:
            from pytrickle.cli.console import show

            show(render(result))


Command = Callable[Concatenate[Invocation, Arguments], None]


def command(
    app: typer.Typer, name: str, *, example: str, takes: Sequence[Parameter] = ()
) -> Callable[[Command[Arguments]], Command[Arguments]]:
    """Register a function as a command of `app`; it receives an Invocation, then its own arguments by name.

    Parameters in `takes` that it does not name reach it as further keywords. --dsn and --json are added to its options.
    A PytrickleError ends it with a sentence, a hint and exit code 1, or 3 where a stream table is merely behind.
    """

    def register(function: Command[Arguments]) -> Command[Arguments]:
        @functools.wraps(function)
        def run(context: typer.Context, dsn: str | None, as_json: bool, **arguments: Any) -> None:
            invocation = _merged(context.obj, dsn, as_json)
            _warn_of_password(invocation)
            with _errors_shown(as_json=invocation.as_json):
                function(invocation, **arguments)  # type: ignore[call-arg]

        _describe(run, function, takes)
        app.command(name, epilog=f"Example: {example}")(run)
        return function

    return register


def fail_if_any_failed(results: Sequence[RefreshResult]) -> None:
    """End the command with exit code 1 if a refresh failed."""
    if any(result.action == "FAILED" for result in results):
        raise typer.Exit(1)


def root_options(context: typer.Context, dsn: Dsn = None, as_json: Json = False) -> None:
    """Take --dsn and --json before a command's name; use it as the callback of a Typer app."""
    context.obj = _merged(context.obj, dsn, as_json)


def _merged(outer: Invocation | None, dsn: str | None, as_json: bool) -> Invocation:
    outer = outer or Invocation()
    return Invocation(outer.dsn if dsn is None else dsn, outer.as_json or as_json)


def _warn_of_password(invocation: Invocation) -> None:
    """Say on stderr, once for a command, that a password in an argument is no secret on this machine."""
    if not invocation.dsn:
        return
    from pytrickle.database import has_secret

    if has_secret(invocation.dsn):
        from pytrickle.cli.console import show_warning

        show_warning(
            "The list of processes (ps) shows the password in --dsn to everybody on this machine.",
            "Put it into PGPASSFILE (~/.pgpass), a service file, or the variable PYTRICKLE_DSN or PGPASSWORD.",
            as_json=invocation.as_json,
        )


def _describe(run: Any, function: Callable[..., None], takes: Sequence[Parameter]) -> None:
    """Give the wrapper the parameters Typer reads: the function's own, the context, and the common options."""
    found = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    named = [parameter for parameter in found if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD]
    own = [*named, *takes, *(parameter for parameter in found if parameter.kind is Parameter.KEYWORD_ONLY)]
    common = [
        Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context),
        Parameter("dsn", Parameter.KEYWORD_ONLY, annotation=Dsn, default=None),
        Parameter("as_json", Parameter.KEYWORD_ONLY, annotation=Json, default=False),
    ]
    parameters = [_in_range(parameter).replace(kind=Parameter.KEYWORD_ONLY) for parameter in own] + common
    run.__signature__ = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def _in_range(parameter: Parameter) -> Parameter:
    """Have a parameter of whole numbers refuse what no bigint holds, unless it has a check of its own."""
    kind, *said = get_args(parameter.annotation) or (None,)
    parts = {kind, *get_args(kind), *(one for part in get_args(kind) for one in get_args(part))}
    if int not in parts or any(each.callback for each in said):
        return parameter
    described = copy(said[0])
    described.callback = up_to(BIGINT)
    return parameter.replace(annotation=Annotated[kind, described])


@contextmanager
def _errors_shown(*, as_json: bool) -> Iterator[None]:
    try:
        yield
    except PytrickleError as error:
        from pytrickle.cli.console import show_error

        error.hint = on_the_command_line(error.hint) if error.hint else None
        show_error(error, as_json=as_json)
        raise typer.Exit(UNHEALTHY if isinstance(error, NotYet) else 1) from None
