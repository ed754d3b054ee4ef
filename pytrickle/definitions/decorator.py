"""A stream table defined in Python: a function that returns its query, with its name and options."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Unpack

from pytrickle.catalog.options import DECLARED, Options
from pytrickle.definitions.values import StreamTableDefinition
from pytrickle.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class DefinedInPython:
    """A function that returns the text of a query, and what `stream_table` said of it; it can be called as before."""

    function: Callable[[], str]
    name: str
    renamed_from: str | None
    options: Options

    def __call__(self) -> str:
        return self.function()

    def definition(self, origin: str) -> StreamTableDefinition:
        """Return the definition, for which the function is called."""
        given = {name: _plain(value) for name, value in self.options.items() if value is not None}
        return StreamTableDefinition(self.name, self.function(), given, origin, self.renamed_from)


def stream_table(
    name: str | None = None, *, renamed_from: str | None = None, **options: Unpack[Options]
) -> Callable[[Callable[[], str]], DefinedInPython]:
    """Define a stream table by a function that returns its query; without a name it has that of the function.

    The options are those of Client.create_stream_table. `pytrickle plan` and `apply` find what the Python files of a
    project define.
    """
    if strangers := sorted(set(options) - set(DECLARED)):
        known = ", ".join(sorted(DECLARED))
        raise InvalidArgument(f"A stream table has no option {strangers[0]!r}.", f"The options are {known}.")
    return lambda function: DefinedInPython(function, name or function.__name__, renamed_from, options)


def _plain(value: object) -> object:
    return f"{value.total_seconds():f} seconds" if isinstance(value, timedelta) else value
