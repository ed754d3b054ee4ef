"""The only door to PostgreSQL's client library: connections, snapshots, and errors in our own words."""

from pytrickle.db.address import Address, connection_string, has_secret, named
from pytrickle.db.connect import connect
from pytrickle.db.engine import engine
from pytrickle.db.jdbc import JdbcTarget, jdbc_target
from pytrickle.db.jdbc_text import jdbc_text
from pytrickle.db.patience import PATIENCE, impatient, unless_locked, wait_a_moment
from pytrickle.db.search_path import SAFE_PATH, quoted_path
from pytrickle.db.snapshot import Snapshot, Snapshots, exported_snapshot, keep_open
from pytrickle.db.statement import statement
from pytrickle.db.translate import stopped_by_limit, translate_errors

__all__ = [
    "PATIENCE",
    "SAFE_PATH",
    "Address",
    "JdbcTarget",
    "Snapshot",
    "Snapshots",
    "connect",
    "connection_string",
    "engine",
    "exported_snapshot",
    "has_secret",
    "impatient",
    "jdbc_target",
    "jdbc_text",
    "keep_open",
    "named",
    "quoted_path",
    "statement",
    "stopped_by_limit",
    "translate_errors",
    "unless_locked",
    "wait_a_moment",
]
