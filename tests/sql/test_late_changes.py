"""What came too late for closed windows is for those who may read every row of the stream table."""

import psycopg
import pytest

from tests.conftest import Database
from tests.sql.checks import create, refused

LATE = (
    "INSERT INTO pgtrickle.pgt_late_changes (pgt_id, window_end, closed_through, weight, change)"
    " VALUES (%s, '2026-03-01', '2026-03-02', 1, '{\"page\": 77}')"
)
LISTED = "SELECT change ->> 'page' FROM pgtrickle.late_changes()"


@pytest.fixture
def reader(db: Database) -> psycopg.Connection:
    """Somebody who may select from a stream table with a late change, of which row security hides some rows."""
    db.execute("CREATE TABLE clicks (at timestamptz, page integer)")
    db.execute(LATE, create(db, "SELECT at AS ends, page FROM clicks", "seen", watermark_gating="gate"))
    role = db.create_role("reader")
    db.execute(f"GRANT SELECT ON seen TO {role}")
    connection = db.connect()
    connection.execute(f"SET SESSION AUTHORIZATION {role}")
    return connection


def test_who_may_select_sees_late_changes(reader: psycopg.Connection) -> None:
    assert reader.execute(LISTED).fetchall() == [("77",)]
    assert reader.execute(LISTED.replace("()", "('seen')")).fetchall() == [("77",)]


def test_row_security_hides_late_changes_from_who_does_not_bypass_it(db: Database, reader: psycopg.Connection) -> None:
    db.execute("ALTER TABLE seen ENABLE ROW LEVEL SECURITY")
    db.execute("CREATE POLICY few ON seen FOR SELECT USING (page = 1)")
    assert reader.execute(LISTED).fetchall() == []
    with refused("42501"):
        reader.execute(LISTED.replace("()", "('seen')"))
    assert db.execute(LISTED) == [("77",)]


def test_who_may_not_select_sees_none(db: Database, reader: psycopg.Connection) -> None:
    db.execute("REVOKE SELECT ON seen FROM reader")
    assert reader.execute(LISTED).fetchall() == []
    with refused("42501"):
        reader.execute(LISTED.replace("()", "('seen')"))
