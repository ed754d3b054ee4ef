"""The only place that knows psycopg's errors: constraint name and SQLSTATE to our tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from pytrickle import errors
from pytrickle.database.denied import denied
from pytrickle.database.excerpt import excerpt_of
from pytrickle.database.messages import LOCK_TIMEOUT, LOGIN_REFUSED, STATEMENT_TIMEOUT
from pytrickle.database.refused import refused_connection
from pytrickle.errors import PytrickleError

# Our own SQL names what it objects to as the constraint, where the SQLSTATE alone would not tell.
_BY_CONSTRAINT: dict[str, type[PytrickleError]] = {
    "frontier_not_readable": errors.RefreshConflict,
    "invalid_argument": errors.InvalidArgument,
    "not_differentiable": errors.NotDifferentiable,
    "not_fresh": errors.NotFresh,
    "not_retained": errors.NotRetained,
    "restore_under_way": errors.RestoreUnderWay,
    "unknown_stream_table": errors.UnknownStreamTable,
    "unknown_watermark_group": errors.UnknownWatermarkGroup,
    "wait_timeout": errors.WaitTimeout,
}

_BY_SQLSTATE: dict[str, type[PytrickleError]] = {
    "0A000": errors.QueryRefused,
    "22000": errors.WatermarkMovedBack,
    "22004": errors.InvalidArgument,
    "22023": errors.InvalidArgument,
    "25006": errors.ReadOnly,
    "40001": errors.SerializationFailure,
    "40P01": errors.SerializationFailure,
    "42501": errors.InsufficientPrivilege,
    "42704": errors.InvalidArgument,
    "42710": errors.InvalidArgument,
    "42P01": errors.InvalidArgument,
    "42P07": errors.StreamTableExists,
    "42P17": errors.CycleDetected,
    "53000": errors.ServerExhausted,
    "53100": errors.DiskFull,
    "53200": errors.ServerExhausted,
    "53300": errors.ConnectionLost,
    # Of temporary files, in PostgreSQL itself: what a refresh needs of them also depends on what changed.
    "53400": errors.ServerExhausted,
    "55000": errors.InvalidArgument,
    "55P03": errors.LockTimeout,
    "57014": errors.Canceled,
    "57P01": errors.ConnectionLost,
    "57P02": errors.ConnectionLost,
    "57P03": errors.ConnectionLost,
}

# The limits by which the server ends a session, rather than a statement.
_ENDED_BY = {
    "25P03": "idle_in_transaction_session_timeout",
    "25P04": "transaction_timeout",
    "57P05": "idle_session_timeout",
}

_BY_CLASS: dict[str, type[PytrickleError]] = {
    "08": errors.ConnectionLost,
    "2B": errors.InvalidArgument,
    "28": errors.ConfigError,
    "3D": errors.ConfigError,
    "3F": errors.InvalidArgument,
    "40": errors.SerializationFailure,
    "42": errors.QueryRefused,
    "53": errors.ServerExhausted,
}

# What libpq was about when a connection broke, and what that may mean.
_BROKEN = re.compile(r"^(?:consuming input|flushing|sending [\w ]+) failed: ([^\n]+)(?s:.*)")
# The server cannot write a text in UTF-8: where its encoding is SQL_ASCII, any bytes are one.
_NO_UTF8 = frozenset({"22021", "22P05"})
# Of a domain, in an array or a row: columns of domains are stored with the types below them, but were not always.
NULL_IN_DOMAIN = (
    "Nothing was changed. A query that shows NULL within an array or a row, where its type is this domain, must cast it"
    " to the type below the domain: CAST(prices AS numeric[])."
)
# psql runs such a query, of which no table can be made.
_SAME_NAME_TWICE = "Give each column of the query a name of its own, as in SELECT a.id AS first, b.id AS second."
_MISSING_OBJECT = frozenset({"3F000", "42704", "42883", "42P01"})
# In some languages names stand in other quotes.
_CATALOG_NAME = re.compile(r'\bpgtrickle\b(\.|"|\s?[«»])')


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise our own errors in place of psycopg's and SQLAlchemy's, for the length of the block or function."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error) from error
    except Exception as error:
        # SQLAlchemy's errors carry the driver's. It is not loaded for this: that takes longer than a small command.
        if not isinstance(original := getattr(error, "orig", None), psycopg.Error):
            raise
        raise translated(original) from original


def stopped_by_limit(message: str) -> PytrickleError | None:
    """Return the error that says in plain words which limit ended a statement, if the server's message is of one."""
    if message in STATEMENT_TIMEOUT:
        return errors.StatementTimeout("A statement ran for longer than statement_timeout allows.", sqlstate="57014")
    if message in LOCK_TIMEOUT:
        return errors.LockTimeout("Another session holds a lock on what is needed.", sqlstate="55P03")
    return None


def translated(error: psycopg.Error) -> PytrickleError:
    """Return the error of our tree that says the same, with the server's DETAIL and HINT as its hint.

    One about a place in a defining query has that line of it, with a caret.
    """
    message = error.diag.message_primary or _BROKEN.sub(r"\1", str(error).strip()) or type(error).__name__
    hint = "\n".join(filter(None, (error.diag.message_detail, error.diag.message_hint))) or None
    kind = _kind(error, message)
    if plainly := stopped_by_limit(message) or _ended(error) or _denied(error, message):
        return plainly
    if error.sqlstate is None and LOGIN_REFUSED.search(message):
        return refused_connection(message)
    if kind is errors.NotInstalled:
        return errors.NotInstalled("This database has no pytrickle catalog.", sqlstate=error.sqlstate)
    if error.sqlstate in _NO_UTF8:
        hint = hint or (
            "Text is read as UTF-8. Correct the rows, names, queries or messages of which some bytes are no UTF-8."
        )
    if error.sqlstate is None:
        hint = _of_the_driver(error, message)
    if error.sqlstate == "42701":
        hint = hint or _SAME_NAME_TWICE
    if error.sqlstate == "23502" and error.diag.datatype_name:
        hint = hint or NULL_IN_DOMAIN
    ours = kind(message, hint=hint, sqlstate=error.sqlstate)
    ours.excerpt = excerpt_of(error)
    return ours


def _ended(error: psycopg.Error) -> PytrickleError | None:
    """Return the error that names the limit by which the server ended the session."""
    if (limit := _ENDED_BY.get(error.sqlstate or "")) is None:
        return None
    hint = f"Raise {limit} for the role that connects (ALTER ROLE … SET {limit} = …), or set it to 0."
    return errors.ConnectionLost(f"The server ended the session by {limit}.", hint, sqlstate=error.sqlstate)


def _denied(error: psycopg.Error, message: str) -> PytrickleError | None:
    """Return what a role may not do, where the server names a function or table of ours that the role may not use."""
    ours = error.diag.constraint_name
    return denied(message) if error.sqlstate == "42501" and ours is None else None


def _of_the_driver(error: psycopg.Error, message: str) -> str | None:
    """Return the hint to an error that no server knows of."""
    if isinstance(error, psycopg.transaction.OutOfOrderTransactionNesting):
        return "A client is for one thread: open one in each."
    if isinstance(error, psycopg.DataError) or message.startswith("cannot adapt"):
        return "The driver cannot pass this value between Python and PostgreSQL."
    return None


def _kind(error: psycopg.Error, message: str) -> type[PytrickleError]:
    sqlstate = error.sqlstate
    if sqlstate is None:
        return errors.ConnectionLost if isinstance(error, psycopg.OperationalError) else errors.DatabaseError
    if sqlstate in _MISSING_OBJECT and _CATALOG_NAME.search(message) and not _within_function(error):
        # Where there is a schema but no such function, the call has arguments of other types.
        return errors.InvalidArgument if sqlstate == "42883" else errors.NotInstalled
    if ours := _BY_CONSTRAINT.get(error.diag.constraint_name or ""):
        return ours
    return _BY_SQLSTATE.get(sqlstate) or _BY_CLASS.get(sqlstate[:2], errors.DatabaseError)


def _within_function(error: psycopg.Error) -> bool:
    """Return whether a function met the error: where one of the catalog does not know a name, the catalog is there."""
    context = error.diag.context
    return bool(context) and "inline_code_block" not in str(context)
