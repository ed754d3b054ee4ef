"""What a page says instead of its contents: one sentence, and what can be done."""

from __future__ import annotations

from dataclasses import dataclass

from pytrickle.errors import ConfigError, ConnectionLost, InsufficientPrivilege, PytrickleError

LOST = "The database cannot be reached. This page comes back by itself."
BROKEN = "This page could not be made. The log of the console says why."
MISSING = "There is nothing of this name."


@dataclass(frozen=True, slots=True)
class Failure:
    """A sentence, what can be done, and the code of the answer."""

    sentence: str
    hint: str | None = None
    code: int = 500


def failure_of(error: PytrickleError) -> Failure:
    """Say what went wrong without the words of the server about how it is reached."""
    if isinstance(error, ConnectionLost | ConfigError):
        return Failure(LOST, code=503)
    if isinstance(error, InsufficientPrivilege):
        return Failure("The role of this console may not see this.", str(error), 403)
    return Failure(str(error), error.hint, 503)
