"""Connections to PostgreSQL, opened one way everywhere."""

from __future__ import annotations

from logging import getLogger
from weakref import WeakKeyDictionary

import psycopg
from psycopg.conninfo import conninfo_to_dict

from pytrickle.database.adapters import register_infinity, register_lowered
from pytrickle.database.errors import translate_errors
from pytrickle.database.pooler import refuse_shared_session
from pytrickle.database.refused import refused_connection
from pytrickle.database.search_path import SAFE_PATH
from pytrickle.errors import ConfigError, ReadOnly

# A role or database may have other defaults, by which backslashes in strings would mean something else, dates and
# intervals not be readable, floats lose digits, names and queries have quotes that nobody wrote, functions of the
# catalog be refused for their style, and transactions not see what was committed meanwhile.
_DEFAULTS = {
    "standard_conforming_strings": "on",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "quote_all_identifiers": "off",
    "plpgsql.extra_errors": "none",
    "default_transaction_isolation": "read committed",
}
_SESSION = _DEFAULTS | {"search_path": SAFE_PATH}
_SETTINGS = ", ".join(f"pg_catalog.set_config('{name}', '{value}', false)" for name, value in _SESSION.items())
# Under it no view of a user can be read, which queries may name. Older servers do not know it.
_SETTINGS += """, CASE WHEN pg_catalog.current_setting('restrict_nonsystem_relation_kind', true) IS NOT NULL
    THEN pg_catalog.set_config('restrict_nonsystem_relation_kind', '', false) END"""
# Nothing is set yet where another process answers than the one that the login was told of: there is a pooler between.
_TIMED = "pg_catalog.current_setting('track_commit_timestamp') OPERATOR(pg_catalog.=) 'on'"
_READING = f"SELECT {_SETTINGS}, {_TIMED} WHERE pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) %s OR %s"

# Each stream table is written by statements of its own. A plan that is kept takes some 130 kB of the server's memory.
_KEPT_PLANS = 500

# A running server cannot change whether it keeps the times of commits.
_timed: WeakKeyDictionary[psycopg.Connection, bool] = WeakKeyDictionary()


def connect(dsn: str = "", *, role: str = "client") -> psycopg.Connection:
    """Open an autocommit connection that the server lists as ``pytrickle/<role>``.

    An empty ``dsn`` means the libpq environment. Names are found in what is PostgreSQL's own, not by the search_path of
    whoever connects: ``USERS_PATH`` sets that for a transaction. Every timestamptz and interval is readable, dates are
    in ISO form. What the catalog says beside its answers is logged as a warning.
    Raises ConfigError for a malformed ``dsn``, settings that cannot be used or a refused login, ConnectionLost when the
    server cannot be reached; neither ever repeats the connection string.
    """
    return open_connection(dsn, role=role, autocommit=True)


def open_connection(dsn: str, *, role: str, autocommit: bool) -> psycopg.Connection:
    """Open a connection as ``connect`` does, in the transaction mode asked for."""
    _check(dsn)
    try:
        connection = psycopg.connect(dsn, autocommit=True, application_name=f"pytrickle/{role}", client_encoding="utf8")
    except UnicodeError:
        raise _no_text() from None
    except psycopg.Error as error:
        raise refused_connection(str(error)) from None
    connection.prepared_max = _KEPT_PLANS
    register_infinity(connection)
    register_lowered(connection)
    connection.add_notice_handler(_pass_on)
    _settle(connection, dsn)
    connection.autocommit = autocommit
    return connection


def _settle(connection: psycopg.Connection, dsn: str) -> None:
    """Have the session be what every one of ours is; raise ConfigError where others would get it afterwards."""
    try:
        with translate_errors():
            if not _set(connection, directly=True):
                refuse_shared_session(connection, dsn)
                _set(connection, directly=False)
    except BaseException:
        connection.close()
        raise


def _set(connection: psycopg.Connection, *, directly: bool) -> bool:
    cursor = psycopg.ClientCursor(connection)
    row = cursor.execute(_READING.encode(), (connection.info.backend_pid, not directly)).fetchone()
    if row:
        _timed[connection] = row[-1]
    return row is not None


def may_time_commits(connection: psycopg.Connection) -> bool:
    """Whether the server may know when a transaction was committed: not where track_commit_timestamp is off."""
    return _timed.get(connection, True)


def has_any_bytes(connection: psycopg.Connection) -> bool:
    """Whether texts of the database may have bytes that are no UTF-8, which the server then refuses to send."""
    return connection.info.parameter_status("server_encoding") == "SQL_ASCII"


def refuse_standby(connection: psycopg.Connection) -> None:
    """Raise ReadOnly, which is retryable here, where the server is a standby: it may be promoted, or fail over."""
    if not _in_recovery(connection):
        return
    # The server tells of its promotion with the answer to the next statement.
    with translate_errors():
        connection.execute("SELECT")
    if _in_recovery(connection):
        raise ReadOnly("The server is a standby.", retryable=True)


def _in_recovery(connection: psycopg.Connection) -> bool:
    return connection.info.parameter_status("in_hot_standby") == "on"


def _pass_on(notice: psycopg.errors.Diagnostic) -> None:
    """Log what the catalog says beside its answer; its notices name a constraint, those of PostgreSQL itself do not."""
    if notice.constraint_name:
        getLogger(__name__).warning("%s. %s", notice.message_primary, notice.message_hint)


def _check(dsn: str) -> None:
    """Refuse what libpq would refuse with a message that repeats parts of the connection string."""
    hint = "It is like postgresql://user@host:5432/database; special characters in the password must be %-encoded."
    try:
        options = conninfo_to_dict(dsn)
    except UnicodeError:
        raise _no_text() from None
    except psycopg.Error:
        raise ConfigError("The connection string is malformed.", hint) from None
    ports = str(options.get("port") or "").split(",")
    if not all(port.isdigit() or not port for port in ports) or "@" in str(options.get("host") or "").lstrip("@"):
        raise ConfigError("The connection string is malformed.", hint)


def _no_text() -> ConfigError:
    return ConfigError(
        "The connection settings have bytes that are no text, or a host that cannot be one.",
        "Write them in UTF-8, and look at PYTRICKLE_DSN and the PG* variables.",
    )
