"""The pooled SQLAlchemy engine for reading and writing the catalog."""

from __future__ import annotations

import sqlalchemy

from pytrickle.database.connect import open_connection


def engine(dsn: str = "") -> sqlalchemy.Engine:
    """Return a pooled engine on psycopg whose connections are opened as ``connect`` opens them.

    Nothing is connected yet. Call ``dispose()`` when done; wrap its use in ``translate_errors``.
    """
    return sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=lambda: open_connection(dsn, role="catalog", autocommit=False),
        pool_pre_ping=True,
        hide_parameters=True,
    )
