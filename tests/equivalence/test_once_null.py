"""Columns that are NOT NULL by now, but had NULLs at the moment that a stream table shows, or is read at."""

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences

# One column of each table is never altered: where all were, nobody can tell what was missed, and no delta is computed.
TABLES = """
CREATE TABLE l (id int PRIMARY KEY, k int);
CREATE TABLE r (k int, v int, note text);
INSERT INTO l SELECT i, nullif(i % 5, 0) FROM generate_series(1, 12) AS i;
INSERT INTO r VALUES (1, 1), (2, NULL), (NULL, 2);
SELECT pgtrickle.create_watermark_group('both', ARRAY['l', 'r']);
"""
QUERIES = {
    "not_in": "SELECT id FROM l WHERE k NOT IN (SELECT k FROM r)",
    "not_in_pairs": "SELECT id FROM l WHERE (k, id) NOT IN (SELECT k, v FROM r)",
    "all_others": "SELECT id FROM l WHERE k <> ALL (SELECT k FROM r WHERE r.v < l.id)",
    "not_both": "SELECT id FROM l WHERE NOT (k IN (SELECT k FROM r) AND id > 3)",
    "keyed": """SELECT l.id, q.n FROM l
        JOIN (SELECT k, count(*) AS n FROM l GROUP BY k) AS q ON q.k IS NOT DISTINCT FROM l.k""",
    "correlated": "SELECT id, (SELECT count(*) FROM r WHERE r.k IS NOT DISTINCT FROM l.k) AS n FROM l",
    "beside": "SELECT l.id, s.n FROM l, LATERAL (SELECT count(*) AS n FROM r WHERE r.v < l.k OR l.k IS NULL) AS s",
    "windowed": "SELECT id, count(*) OVER (PARTITION BY k) AS n FROM l",
}
WITHOUT_NULLS = """
DELETE FROM r WHERE k IS NULL OR v IS NULL; UPDATE l SET k = 7 WHERE k IS NULL;
ALTER TABLE r ALTER k SET NOT NULL, ALTER v SET NOT NULL; ALTER TABLE l ALTER k SET NOT NULL
"""
WITH_NULLS = """
ALTER TABLE r ALTER k DROP NOT NULL, ALTER v DROP NOT NULL; ALTER TABLE l ALTER k DROP NOT NULL;
INSERT INTO r VALUES (NULL, NULL), (3, 3); UPDATE l SET k = NULL WHERE id < 3
"""
ADVANCE = "SELECT pgtrickle.advance_watermark('l', {0}), pgtrickle.advance_watermark('r', {0})"


@pytest.fixture(params=["joined by PostgreSQL", "joined by the engine"])
def small_delta_rows(request: pytest.FixtureRequest) -> int:
    return 0 if request.param == "joined by the engine" else 20_000


def advance(db: Database, day: int) -> None:
    db.execute(ADVANCE.format(f"timestamptz '2026-01-0{day}'"))


def test_nulls_of_before_a_column_was_not_null_are_taken_back(every_db: Database, small_delta_rows: int) -> None:
    every_db.execute(TABLES)
    with local_client(every_db.dsn, small_delta_rows=small_delta_rows) as (client, _), every_db.connect() as connection:
        for name, query in QUERIES.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        client.tick()
        for change in (WITHOUT_NULLS, "UPDATE l SET k = 2 WHERE id > 9", WITH_NULLS, WITHOUT_NULLS, "DELETE FROM r"):
            every_db.execute(change)
            assert {result.action for result in client.tick()} <= {"DIFFERENTIAL", "NO_DATA"}
            for name, query in QUERIES.items():
                assert not differences(connection, name, query, True), (name, change)


def test_nulls_at_the_cut_of_a_first_load_are_taken_back(db: Database, small_delta_rows: int) -> None:
    db.execute(TABLES)
    with local_client(db.dsn, small_delta_rows=small_delta_rows) as (client, _), db.connect() as connection:
        for name, query in QUERIES.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL", watermark_gating="hold_back")
            db.execute(f"CREATE TABLE asked_{name} AS {query}")
        advance(db, 1)
        db.execute(WITHOUT_NULLS)
        assert {result.action for result in client.tick()} == {"FULL"}
        assert not [name for name in QUERIES if differences(connection, name, f"TABLE asked_{name}", True)]
        advance(db, 2)
        assert {result.action for result in client.tick()} <= {"DIFFERENTIAL", "NO_DATA"}
        assert not [name for name, query in QUERIES.items() if differences(connection, name, query, True)]
