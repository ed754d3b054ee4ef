"""Why no connection came about: libpq gives no SQLSTATE for that, only words, its own or those of the server."""

from __future__ import annotations

import re

from pytrickle.database.messages import LOGIN_REFUSED, NO_ROOM, NOT_READY, UNKNOWN_SETTING
from pytrickle.errors import ConfigError, ConnectionLost

# What libpq finds before it has asked any server; but a socket may be missing since the server is down.
_SETTINGS = re.compile(
    r"connection is bad: (?!connection to server|could not (create|look up|translate)|out of memory|no error)"
    r"|^bad value for |^could not match \d|invalid integer value|SSL, but SSL was required"
)
# PostgreSQL's own code for it, which neither libpq nor Java passes on.
TOO_MANY_CONNECTIONS = "53300"
_PREFIX = re.compile("^connection (failed|is bad): ")


def refused_connection(message: str) -> ConfigError | ConnectionLost:
    """Return the error for a connection that could not be opened, which is retryable where waiting may help."""
    reason = _PREFIX.sub("", message.strip())
    if LOGIN_REFUSED.search(message):
        return ConfigError(f"The server refused the login: {reason}", "Check user, password and database name.")
    if _SETTINGS.search(message) or UNKNOWN_SETTING.search(message):
        return ConfigError(
            f"The connection settings cannot be used: {reason}",
            "Correct what --dsn, PYTRICKLE_DSN, the PG* variables or the service file say.",
        )
    sqlstate = TOO_MANY_CONNECTIONS if lacks_connections(message) else None
    return ConnectionLost(f"The server could not be reached: {reason}", hint_of_server(message), sqlstate=sqlstate)


def lacks_connections(message: str) -> bool:
    """Return whether a server refuses a connection since too many are open, in whichever language it says so."""
    return NO_ROOM.search(message) is not None


def hint_of_server(message: str) -> str | None:
    """Return what to do about a server that takes no connection now, in whichever language it says so.

    None where the message is about something else.
    """
    if lacks_connections(message):
        return (
            "The server lends no further connection: close some (SELECT * FROM pg_stat_activity), raise max_connections"
            " or the CONNECTION LIMIT of the role or database, or lower max_concurrent_refreshes."
        )
    if "query_wait_timeout" in message:
        return (
            "PgBouncer lends no further connection: give its pool (default_pool_size) as many sessions as all"
            " refreshers have together, about ten each, or let them connect to PostgreSQL itself."
        )
    if NOT_READY.search(message):
        return (
            "The server starts, stops or recovers: repeat this once it takes connections, as pytrickle run does by"
            " itself."
        )
    return None
