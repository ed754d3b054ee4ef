"""The only door to PostgreSQL's client library: connections, snapshots, and errors in our own words."""

from pytrickle.db.connect import connect
from pytrickle.db.engine import engine
from pytrickle.db.jdbc import JdbcTarget, jdbc_target
from pytrickle.db.snapshot import Snapshot, Snapshots, exported_snapshot, keep_open
from pytrickle.db.statement import statement
from pytrickle.db.translate import translate_errors

__all__ = [
    "JdbcTarget",
    "Snapshot",
    "Snapshots",
    "connect",
    "engine",
    "exported_snapshot",
    "jdbc_target",
    "keep_open",
    "statement",
    "translate_errors",
]
