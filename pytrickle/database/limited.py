"""Connection strings whose sessions do not wait for ever, and may only read."""

from __future__ import annotations

import os
from datetime import timedelta

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pytrickle.errors import ConfigError

CONNECT_TIMEOUT = 5


def limited(dsn: str, statement_timeout: timedelta, *, read_only: bool) -> str:
    """Return a connection string for sessions in which a statement may run for so long.

    With `read_only`, what they change is refused.

    Options that the string or PGOPTIONS has already stay. Raises ConfigError for a malformed string.
    """
    try:
        given = conninfo_to_dict(dsn)
    except psycopg.Error:
        hint = "It is like postgresql://user@host:5432/database; special characters in the password must be %-encoded."
        raise ConfigError("The connection string is malformed.", hint) from None
    limit = round(statement_timeout.total_seconds() * 1000)
    ours = f"-c statement_timeout={limit}{' -c default_transaction_read_only=on' if read_only else ''}"
    options = f"{given.get('options') or os.environ.get('PGOPTIONS', '')} {ours}".lstrip()
    patience = given.get("connect_timeout") or os.environ.get("PGCONNECT_TIMEOUT") or CONNECT_TIMEOUT
    return make_conninfo(dsn, options=options, connect_timeout=patience)
