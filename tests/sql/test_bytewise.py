"""Whether different texts may be equal in a query is read from its tree, wherever the collation comes from."""

from __future__ import annotations

import psycopg
import pytest

from tests.conftest import Database

PREAMBLE = (
    "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    "CREATE COLLATION other (provider = icu, locale = 'sv')",
    "CREATE DOMAIN folded AS text COLLATE nocase",
    "CREATE TYPE pair AS (code text COLLATE nocase, n int)",
    "CREATE FUNCTION fold(code text) RETURNS folded LANGUAGE sql IMMUTABLE RETURN code",
    "CREATE FUNCTION named(n int) RETURNS folded LANGUAGE sql IMMUTABLE RETURN n::text",
    "CREATE TABLE t (a text, b text COLLATE nocase, c int, p pair, l folded[])",
    "CREATE VIEW below AS SELECT b AS a, c FROM t",
)
BYTEWISE = (
    "SELECT a, c FROM t",
    'SELECT a COLLATE "C" AS a FROM t ORDER BY a COLLATE "C"',
    "SELECT a COLLATE other AS a, count(*) FROM t GROUP BY a COLLATE other",
    # What a function returns has the collation of what it is given, where that has one.
    "SELECT count(*) FROM t GROUP BY fold(a)",
    "SELECT 'nocase' AS a, 4711 AS collation FROM t",
)
NOT_BYTEWISE = (
    "SELECT b FROM t",
    "SELECT c FROM t WHERE b = 'x'",
    "SELECT DISTINCT a COLLATE nocase AS a FROM t",
    "SELECT count(*) FROM t GROUP BY a::folded",
    "SELECT count(*) FROM t GROUP BY named(c)",
    "SELECT (p).code FROM t",
    "SELECT DISTINCT l FROM t",
    "SELECT c FROM t ORDER BY a COLLATE nocase LIMIT 1",
    "SELECT c FROM t WHERE (a COLLATE nocase, c) < ('x', 1)",
    "SELECT c FROM t WHERE a IN (SELECT a COLLATE nocase FROM t)",
    "SELECT b FROM t UNION SELECT 'x'",
    "WITH q AS (SELECT a::folded AS a FROM t) SELECT max(a) FROM q",
    "SELECT row_number() OVER (PARTITION BY a COLLATE nocase) FROM t",
    "SELECT max(a) FROM below",
)


def test_collations_are_found_wherever_they_come_from(db: Database) -> None:
    try:
        for statement in PREAMBLE:
            db.execute(statement)
    except psycopg.errors.FeatureNotSupported as error:
        pytest.skip(f"such collations need ICU: {error}")
    found = {query: _is_bytewise(db, query) for query in BYTEWISE + NOT_BYTEWISE}
    assert found == {**dict.fromkeys(BYTEWISE, True), **dict.fromkeys(NOT_BYTEWISE, False)}


@pytest.mark.parametrize("query", ["SELECT a FROM t", "SELECT DISTINCT a FROM t GROUP BY GROUPING SETS (a, ())"])
def test_a_database_without_such_collations_has_none_to_look_for(db: Database, query: str) -> None:
    db.execute("CREATE TABLE t (a text)")
    assert _is_bytewise(db, query)


def _is_bytewise(db: Database, query: str) -> bool:
    db.execute(f"CREATE VIEW asked AS {query}")
    try:
        return bool(db.value("SELECT pgtrickle_private.is_bytewise('asked')"))
    finally:
        db.execute("DROP VIEW asked")
