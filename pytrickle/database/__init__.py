"""The only door to PostgreSQL's client library: connections, snapshots, and errors in our own words."""

from pytrickle.database.address import Address, connection_string, has_secret, named
from pytrickle.database.connect import connect, has_any_bytes, may_time_commits, refuse_standby
from pytrickle.database.errors import stopped_by_limit, translate_errors
from pytrickle.database.jdbc import JdbcTarget, current_target, jdbc_target
from pytrickle.database.jdbc_text import jdbc_text
from pytrickle.database.limited import limited
from pytrickle.database.lock_timeout import PATIENCE, impatient, unless_locked, wait_a_moment
from pytrickle.database.pipeline import is_stuck, pipelined
from pytrickle.database.refused import TOO_MANY_CONNECTIONS, hint_of_server, lacks_connections
from pytrickle.database.savepoint import undone
from pytrickle.database.search_path import (
    AGAIN_READABLE,
    AGAIN_SAFE,
    READABLE_STYLE,
    SAFE_PATH,
    USERS_PATH,
    USERS_SETTINGS,
    USERS_STYLE,
    path_set,
    quoted_path,
)
from pytrickle.database.single import Single
from pytrickle.database.snapshot import Snapshot, Snapshots, exported_snapshot, keep_open, server_of
from pytrickle.database.trusted import filled, function_call, settle, trusted

__all__ = [
    "AGAIN_READABLE",
    "AGAIN_SAFE",
    "PATIENCE",
    "READABLE_STYLE",
    "SAFE_PATH",
    "TOO_MANY_CONNECTIONS",
    "USERS_PATH",
    "USERS_SETTINGS",
    "USERS_STYLE",
    "Address",
    "JdbcTarget",
    "Single",
    "Snapshot",
    "Snapshots",
    "connect",
    "connection_string",
    "current_target",
    "exported_snapshot",
    "filled",
    "function_call",
    "has_any_bytes",
    "has_secret",
    "hint_of_server",
    "impatient",
    "is_stuck",
    "jdbc_target",
    "jdbc_text",
    "keep_open",
    "lacks_connections",
    "limited",
    "may_time_commits",
    "named",
    "path_set",
    "pipelined",
    "quoted_path",
    "refuse_standby",
    "server_of",
    "settle",
    "stopped_by_limit",
    "translate_errors",
    "trusted",
    "undone",
    "unless_locked",
    "wait_a_moment",
]
