"""Write docs/reference/cli.md to standard output, from the commands themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args

from typer.main import get_command

sys.path.insert(0, str(Path(__file__).parents[1]))

from pytrickle.cli import app

HEAD = """# Command line

<!-- Written by scripts/cli_reference.py from the commands themselves; do not edit. -->

For whoever works at a terminal or writes scripts: every command with its arguments and exit codes.

Every command takes `--dsn` and `--json`, before or after its name. Without `--dsn` the database is that of
`PYTRICKLE_DSN`, else of libpq's environment (`PGHOST`, `PGDATABASE`, `PGSERVICE`, …). Results go to standard output,
errors and progress to standard error; a password is never printed.

On a terminal, a table is laid out for its width: sentences are wrapped between words, and what is least important is
left out and named below. A pipe or a file gets every column, one line for each row of up to 2,000 characters. Moments
are written to the second, in your own time zone on a terminal and in UTC elsewhere; `--json` has them in full, in UTC,
and durations in seconds.

| exit code | |
|---|---|
| 0 | done |
| 1 | an error; its sentence and a hint are on standard error |
| 2 | wrong usage; of `plan` also: the database differs from the project |
| 3 | a check found something stale or unhealthy |
"""
COMMON = {"dsn", "as_json", "help"}


def main() -> None:
    """Print the reference."""
    sys.stdout.write("\n".join([HEAD, *_commands(get_command(app), "pytrickle")]).rstrip("\n") + "\n")


def _commands(group: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")
        else:
            yield from _command(command, f"{path} {name}")


def _command(command: Any, path: str) -> Iterator[str]:
    yield f"## {path}\n"
    yield f"{command.help}\n"
    rows = [_row(parameter) for parameter in command.params if parameter.name not in COMMON and not parameter.hidden]
    if rows:
        yield "\n".join(["| argument or option | |", "|---|---|", *rows]) + "\n"
    yield f"{command.epilog.replace('Example: ', 'Example: `', 1)}`\n"


def _row(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    notes = ["required"] if parameter.required else []
    notes.append(", ".join(f"`{choice}`" for choice in _choices(parameter)))
    notes += ["may be repeated"] if parameter.multiple or parameter.nargs == -1 else []
    shown = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    if shown is not None and not isinstance(shown, bool) and not parameter.required:
        notes.append(f"default {shown}")
    noted = "; ".join(filter(None, notes))
    return f"| {names} | {parameter.help}{f' ({noted})' if noted else ''} |"


def _choices(parameter: Any) -> list[str]:
    """Return the values an option is limited to; Typer keeps them in another place since it left Click."""
    annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, Enum):
            return [str(choice.value) for choice in part]
    choices = getattr(getattr(parameter, "type", None), "choices", ())
    return [str(getattr(choice, "value", choice)) for choice in choices]


if __name__ == "__main__":
    main()
