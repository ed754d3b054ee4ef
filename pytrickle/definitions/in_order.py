"""Doing things that need each other in an order that nobody wrote down."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

import psycopg

from pytrickle.database import translate_errors
from pytrickle.errors import PytrickleError

# What is not there yet, is there still or is named by something yet: others may change that, but no lock or crash.
MAY_PASS = ("0A", "22", "2B", "42")
MISSING = "42P01"


class Named(Protocol):
    """What an error is told to be about."""

    @property
    def origin(self) -> str:
        """Where it is written."""

    @property
    def name(self) -> str:
        """What others that need it know it by."""


Item = TypeVar("Item", bound=Named)
Result = TypeVar("Result")


def in_order(
    connection: psycopg.Connection, items: Iterable[Item], do: Callable[[Item], Result]
) -> tuple[list[tuple[Item, Result]], list[tuple[Item, PytrickleError]]]:
    """Do each item within a savepoint, and those that fail again once others have been done.

    Errors that have nothing to do with what is there are raised at once. Return what was done, in the order in which
    it could be done, with its result; and what could not be, with why.
    """
    done: list[tuple[Item, Result]] = []
    waiting, failed = list(items), list[tuple[Item, PytrickleError]]()
    while waiting:
        before, failed = len(done), []
        for item in waiting:
            try:
                with translate_errors(), connection.transaction():
                    done.append((item, do(item)))
            except PytrickleError as error:
                if not (error.sqlstate or "").startswith(MAY_PASS):
                    raise
                failed.append((item, error))
        waiting = [item for item, _ in failed]
        if len(done) == before:
            break
    return done, failed


def blame(failed: Sequence[tuple[Item, PytrickleError]]) -> PytrickleError:
    """Return the error of what failed first by itself, which begins with where that is written.

    What only misses another one that failed says nothing new.
    """
    names = [item.name.rpartition(".")[2].strip('"') for item, _ in failed]
    causes = [
        (item, error)
        for (item, error), own in zip(failed, names, strict=True)
        if error.sqlstate != MISSING or not any(f'"{name}"' in error.message for name in names if name != own)
    ]
    item, error = (causes or failed)[0]
    error.message = f"{item.origin}: {error.message}"
    error.args = (error.message,)
    return error
