"""What is declared NOT NULL may be NULL all the same, and a cast may give NULL: NOT IN and groups must know."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from tests.conftest import TEMPLATE, Database, fresh
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.played import assert_differential
from tests.repeats import since_18
from tests.servers import NEWEST, OLDEST, Server

QUERIES = {
    "missing": "SELECT i FROM a WHERE i NOT IN (SELECT k FROM par)",
    "correlated": "SELECT i FROM a WHERE i NOT IN (SELECT k FROM par WHERE par.g = a.g)",
    "counted": "SELECT k, count(*) OVER (PARTITION BY k) AS n FROM par",
    "twice": "SELECT n, count(k) AS c FROM (SELECT k, count(*) AS n FROM par GROUP BY k) AS q GROUP BY n",
}
CHANGES = (
    "INSERT INTO a VALUES (4, 1), (5, 2)",
    "INSERT INTO par VALUES (2, 1), (7, 2)",
    "DELETE FROM par WHERE k IS NULL",
    "DELETE FROM a WHERE i = 4",
)
SETUP = "CREATE TABLE a (i int, g int); INSERT INTO a VALUES (1, 1), (2, 1), (3, 2);"
LAX_CHILD = """
CREATE TABLE par (k int NOT NULL, g int); CREATE TABLE child () INHERITS (par);
ALTER TABLE child ALTER COLUMN k DROP NOT NULL; INSERT INTO par VALUES (1, 1); INSERT INTO child VALUES (NULL, 2)
"""
NOT_VALID = """
CREATE TABLE par (k int, g int); INSERT INTO par VALUES (1, 1), (NULL, 2);
ALTER TABLE par ADD CONSTRAINT present NOT NULL k NOT VALID
"""
OWN_CAST = """
CREATE TABLE par (code text NOT NULL, wrapped jsonb NOT NULL); INSERT INTO par VALUES ('1', '1'), ('none', 'null');
CREATE FUNCTION number_in(code text) RETURNS int LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN code ~ '^[0-9]+$' THEN int4in(textout(code)) END;
CREATE CAST (text AS int) WITH FUNCTION number_in(text)
"""


def play(db: Database, setup: str, queries: dict[str, str], changes: tuple[str, ...]) -> None:
    """Refresh by deltas only, and compare after each change."""
    assert_differential(db, f"{SETUP}{setup}", queries, changes)


def test_a_child_may_have_what_its_parent_forbids(db: Database) -> None:
    play(db, LAX_CHILD, QUERIES, CHANGES)


def test_a_child_may_come_later(db: Database) -> None:
    db.execute("CREATE TABLE par (k int NOT NULL, g int); INSERT INTO par VALUES (1, 1); CREATE TABLE a (i int, g int)")
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        client.create_stream_table("missing", QUERIES["missing"])
        client.tick()
        db.execute("CREATE TABLE child () INHERITS (par); ALTER TABLE child ALTER COLUMN k DROP NOT NULL")
        for change in ("INSERT INTO child VALUES (NULL, 2)", "INSERT INTO a VALUES (4, 1), (1, 1)"):
            db.execute(change)
            client.tick()
            assert not differences(connection, "missing", QUERIES["missing"], False), change


@since_18
def test_a_constraint_may_be_younger_than_its_rows(servers: Callable[[int], Server]) -> None:
    with fresh(servers(NEWEST), TEMPLATE) as db:
        play(db, NOT_VALID, QUERIES, CHANGES)


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_a_cast_may_give_null(servers: Callable[[int], Server], version: int) -> None:
    queries = {"by_code": "SELECT i FROM a WHERE i NOT IN (SELECT code::int FROM par)"}
    if version >= 18:  # Before PostgreSQL 18 the cast of JSON's null to a number is an error.
        queries["wrapped"] = "SELECT i FROM a WHERE i NOT IN (SELECT wrapped::int FROM par)"
    changes = (
        "INSERT INTO a VALUES (4, 1)",
        "DELETE FROM par WHERE code = 'none'",
        "INSERT INTO a VALUES (5, 1), (1, 1)",
    )
    with fresh(servers(version), TEMPLATE) as db:
        play(db, OWN_CAST, queries, changes)


def test_padded_texts_group_as_their_collation_compares_them(db: Database) -> None:
    try:
        db.execute("CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    except psycopg.errors.FeatureNotSupported as error:
        pytest.skip(f"such collations need ICU: {error}")
    setup = """CREATE TABLE par (id int, code bpchar COLLATE nocase, four char(4), name text COLLATE nocase);
        INSERT INTO par VALUES (1, 'a', 'a', 'b')"""
    queries = {
        "grouped": "SELECT code, count(*) AS n FROM par GROUP BY code",
        "apart": "SELECT DISTINCT code FROM par",
        "either": "SELECT four FROM par UNION SELECT name FROM par",
    }
    play(db, setup, queries, ("INSERT INTO par VALUES (2, 'A  ', 'c', 'a')", "DELETE FROM par WHERE id = 1"))
