"""How an attack is tried, and what it came to: the error that stopped it, or what the catalog holds now."""

from __future__ import annotations

from typing import Any

import psycopg

from tests.conftest import Database
from tests.security.roles import Session

# What no stranger may change. Row counts would miss a row that was replaced.
TABLES = (
    "SELECT c.oid::regclass::text FROM pg_class AS c WHERE c.relkind = 'r' AND c.relnamespace::regnamespace::text"
    " IN ('pgtrickle', 'pgtrickle_changes', 'pgtrickle_private', 'pgtrickle_state') ORDER BY 1"
)


def stopped(session: Session, statement: str, *parameters: Any) -> str:
    """Try a statement; return the SQLSTATE of the error that stopped it, or fail if nothing did."""
    try:
        session.execute(statement.encode(), parameters or None)
    except psycopg.Error as error:
        return error.sqlstate or type(error).__name__
    finally:
        if not session.closed and not session.autocommit:
            session.rollback()
    raise AssertionError(f"nothing stopped {statement[:200]}")


def outcome(session: Session, statement: str, *parameters: Any) -> str:
    """Try a statement that may do something; return the SQLSTATE that it ended with, 00000 for none."""
    try:
        session.execute(statement.encode(), parameters or None)
    except psycopg.Error as error:
        return error.sqlstate or type(error).__name__
    return "00000"


def catalog(db: Database) -> dict[str, list[str]]:
    """Return every row of the catalog, of the change buffers and of the aggregate states, as text."""
    tables = [name for (name,) in db.execute(TABLES)]
    assert "pgtrickle.pgt_stream_tables" in tables
    return {name: sorted(row for (row,) in db.execute(f"SELECT t::text FROM {name} AS t")) for name in tables}
