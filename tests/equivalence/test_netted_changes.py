"""Changes that cancel each other are left out, but not where one came before a cut and the other after it."""

from __future__ import annotations

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client

TABLES = """
CREATE TABLE parts (id int PRIMARY KEY, rare boolean, seen int);
CREATE TABLE lines (id int PRIMARY KEY, part int, n int, seen int);
CREATE INDEX ON lines (part);
INSERT INTO parts SELECT i, true, 0 FROM generate_series(1, 50) AS i;
INSERT INTO lines SELECT i, i % 40 + 1, 1, 0 FROM generate_series(1, 400) AS i;
ANALYZE;
SELECT pgtrickle.create_watermark_group('both', ARRAY['parts', 'lines']);
"""
QUERY = """SELECT p.id, s.n FROM parts p
JOIN (SELECT part, sum(n) AS n FROM lines GROUP BY part HAVING sum(n) > 0) s ON s.part = p.id WHERE p.rare"""
ADVANCE = "SELECT pgtrickle.advance_watermark('parts', {0}), pgtrickle.advance_watermark('lines', {0})"
AT = "timestamptz '2026-01-0{}'"


def advance(db: Database, day: int) -> None:
    db.execute(ADVANCE.format(AT.format(day)))


# Which table has more changes decides which is joined as it was before, and which as it is then.
@pytest.mark.parametrize("further", [0, 9])
def test_a_row_that_went_after_the_cut_is_still_joined_at_the_cut(db: Database, further: int) -> None:
    for statement in TABLES.strip().split(";\n"):
        db.execute(statement.rstrip(";"))
    with local_client(db.dsn) as (client, _):
        advance(db, 1)
        client.create_stream_table("result", QUERY, refresh_mode="DIFFERENTIAL", watermark_gating="hold_back")
        client.tick()
        db.execute(f"INSERT INTO parts SELECT i, true, 0 FROM generate_series(60, {60 + further}) AS i")
        db.execute("INSERT INTO lines VALUES (1000, 60, 5, 0), (1001, 60, 2, 0)")
        expected = db.execute(QUERY + " ORDER BY id")
        advance(db, 2)
        db.execute("DELETE FROM parts WHERE id = 60")
        db.execute("UPDATE lines SET n = 0 WHERE part = 60")
        (result,) = client.tick()
        assert result.action == "DIFFERENTIAL"
        assert (60, 7) in expected and db.execute("SELECT id, n FROM result ORDER BY id") == expected
        advance(db, 3)
        client.tick()
        assert db.execute("SELECT id, n FROM result ORDER BY id") == db.execute(QUERY + " ORDER BY id")


def test_updates_of_what_a_held_back_query_does_not_read_change_nothing(db: Database) -> None:
    for statement in TABLES.strip().split(";\n"):
        db.execute(statement.rstrip(";"))
    with local_client(db.dsn) as (client, _):
        advance(db, 1)
        client.create_stream_table("result", QUERY, refresh_mode="DIFFERENTIAL", watermark_gating="hold_back")
        client.tick()
        before = db.execute("SELECT id, n FROM result ORDER BY id")
        db.execute("UPDATE parts SET seen = seen + 1 WHERE id < 9; UPDATE lines SET seen = seen + 1 WHERE part = 3")
        advance(db, 2)
        db.execute("UPDATE parts SET seen = seen + 1 WHERE id < 5; UPDATE lines SET n = 4 WHERE part = 3")
        (result,) = client.tick()
        assert (result.action, result.rows_inserted, result.rows_deleted) == ("DIFFERENTIAL", 0, 0)
        assert db.execute("SELECT id, n FROM result ORDER BY id") == before
        advance(db, 3)
        client.tick()
        assert db.execute("SELECT id, n FROM result ORDER BY id") == db.execute(QUERY + " ORDER BY id") != before
