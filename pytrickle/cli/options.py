"""The options of a stream table on the command line, made of what is declared of each in the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from inspect import Parameter
from typing import Annotated, Any, cast

import typer

from pytrickle.catalog.options import DECLARED, Option, Options
from pytrickle.cli.values import duration, up_to

# As a variable: a type checker wants to see the names of an enumeration.
_enumeration: Any = StrEnum

Reset = Annotated[
    list[str] | None, typer.Option("--reset", metavar="OPTION", help="Give an option its default again; repeatable.")
]


def parameters(*, at_creation: bool) -> tuple[Parameter, ...]:
    """Return all options as parameters that Typer reads, or those that can be altered later."""
    return tuple(
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(name, hint, option))
        for name, (hint, option) in DECLARED.items()
        if at_creation or not option.at_creation
    )


def given(arguments: Mapping[str, Any]) -> Options:
    """Return those options among a command's arguments that were given."""
    found = {name: arguments[name] for name in DECLARED if arguments.get(name) is not None}
    return cast(Options, {name: value.value if isinstance(value, StrEnum) else value for name, value in found.items()})


def _annotation(name: str, hint: object, option: Option) -> Any:
    """Return a type and its description: a flag, a choice, a length of time, a number or a text."""
    spelled = f"--{name.replace('_', '-')}"
    kind: Any = hint if hint in {bool, int} else str
    settings: dict[str, Any] = {"help": option.help, "metavar": option.metavar}
    if hint is bool:
        spelled += f"/--no-{spelled[2:]}"
    if option.choices:
        kind = _enumeration(name, {choice.upper(): choice for choice in option.choices})
        settings["case_sensitive"] = False
    if option.interval:
        kind = timedelta
        settings["parser"] = duration
    if option.least is not None:
        settings["min"] = option.least
    if option.most is not None:
        settings["callback"] = up_to(option.most)
    return Annotated[kind | None, typer.Option(spelled, **settings)]
