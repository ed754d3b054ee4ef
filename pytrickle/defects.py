"""What fails though it should not: logged with its traceback, and raised as an error that callers know."""

from collections.abc import Iterator
from contextlib import contextmanager
from logging import getLogger

import psycopg

from pytrickle.errors import Defect, PytrickleError


@contextmanager
def defects_named(doing: str) -> Iterator[None]:
    """Raise Defect in place of what is no error of this package, so that it concerns one stream table alone."""
    try:
        yield
    except (PytrickleError, psycopg.Error):
        raise
    except Exception as error:
        raise defect(doing, error) from error


def defect(doing: str, error: Exception) -> Defect:
    """Log a failure with its traceback, and return the error to raise in its place."""
    getLogger(__name__).error("pytrickle failed while %s", doing, exc_info=error)
    return Defect(f"pytrickle failed while {doing}: {error!r}.")
