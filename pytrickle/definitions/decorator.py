"""A stream table defined in Python: a function that returns its query, with its name and options."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Unpack

from pytrickle.catalog.options import DECLARED, Options
from pytrickle.definitions.values import StreamTableDefinition
from pytrickle.errors import InvalidArgument

# The words of Spark's declarative pipelines, for whoever moves a definition from there.
_POLICIES = {
    "auto": "AUTO",
    "incremental": "DIFFERENTIAL",
    "incremental_strict": "DIFFERENTIAL_STRICT",
    "full": "FULL",
}


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
    name: str | None = None,
    *,
    renamed_from: str | None = None,
    gating: str | None = None,
    refresh_policy: str | None = None,
    **options: Unpack[Options],
) -> Callable[[Callable[[], str]], DefinedInPython]:
    """Define a stream table by a function that returns its query; without a name it has that of the function.

    The options are those of Client.create_stream_table. Beside them `gating` stands for `watermark_gating`, and
    `refresh_policy` (`auto`, `incremental`, `incremental_strict` or `full`) for `refresh_mode`. `pytrickle plan` and
    `apply` find what the Python files of a project define.
    """
    if strangers := sorted(set(options) - set(DECLARED)):
        known = ", ".join(sorted(DECLARED))
        raise InvalidArgument(f"A stream table has no option {strangers[0]!r}.", f"The options are {known}.")
    short = {"watermark_gating": ("gating", gating), "refresh_mode": ("refresh_policy", _mode_of(refresh_policy))}
    given: Any = dict(options)
    for word, (alias, value) in short.items():
        if value is not None and given.setdefault(word, value) is not value:
            raise InvalidArgument(f"{alias} and {word} mean the same.", "Give one of them.")
    return lambda function: DefinedInPython(function, name or function.__name__, renamed_from, given)


def _mode_of(policy: str | None) -> str | None:
    if policy is not None and policy not in _POLICIES:
        raise InvalidArgument(f"{policy!r} is no refresh_policy.", f"Give {', '.join(_POLICIES)}.")
    return None if policy is None else _POLICIES[policy]


def _plain(value: object) -> object:
    return f"{value.total_seconds():f} seconds" if isinstance(value, timedelta) else value
