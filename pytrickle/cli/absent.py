"""Arguments that need no conversion get none: Typer loads pydantic for it, which takes longer than a small command.

What it says of others is told in plain words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import typer

from pytrickle.cli.plain_words import plainly


def convert_only_what_is_given(commands: Iterable[Any]) -> None:
    """Have commands, and all within groups, leave options as they are that were not given or are plain text."""
    for command in commands:
        command.get_params = partial(_parameters, command.get_params)
        convert_only_what_is_given(getattr(command, "commands", {}).values())


def _parameters(listed: Callable[[Any], list[Any]], context: Any) -> list[Any]:
    """Return the parameters of a command, --help among them."""
    parameters = listed(context)
    for parameter in parameters:
        if "process_value" not in vars(parameter):
            parameter.process_value = partial(_value, parameter, parameter.process_value)
    return parameters


def _value(parameter: Any, convert: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    """Return what a parameter is worth: as it came where Typer would return it unchanged."""
    if parameter.required if value is None else not _is_plain(parameter, value):
        return _converted(convert, context, value)
    if value is None and (parameter.multiple or parameter.nargs == -1):
        value = ()
    return value if parameter.callback is None else parameter.callback(context, parameter, value)


def _converted(convert: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    try:
        return convert(context, value)
    except typer.BadParameter as error:
        error.message = plainly(error.message, value)
        raise


def _is_plain(parameter: Any, value: Any) -> bool:
    """Say whether a value is text for a parameter that wants just that."""
    # Absent in other releases of Typer, which convert all then.
    kind = getattr(parameter, "type_descriptor", None)
    return isinstance(value, str) and kind is not None and kind.annotation is str and not kind.parameter_info.parser
