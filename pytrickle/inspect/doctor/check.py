"""One finding about the health of something: fine, or a problem with its remedy."""

from collections.abc import Callable
from dataclasses import dataclass

from pytrickle.errors import PytrickleError


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, whether it is as it should be, what was found, and what to do if it is not."""

    name: str
    ok: bool
    detail: str
    remedy: str | None = None


def ok(name: str, detail: str) -> Check:
    """Return a check that found nothing wrong."""
    return Check(name, True, detail)


def problem(name: str, detail: str, remedy: str | None) -> Check:
    """Return a check that found something wrong."""
    return Check(name, False, detail, remedy)


def attempt(name: str, look: Callable[[], str]) -> Check:
    """Return what `look` found, or the problem that it raised; other errors than ours pass through."""
    try:
        return ok(name, look())
    except PytrickleError as error:
        return problem(name, str(error), error.hint)
