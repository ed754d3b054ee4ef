"""Question marks in a query reach PostgreSQL as they are: the JDBC driver takes none of them for a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pytrickle
from pytrickle.compute.spark.jdbc import PinnedReader
from pytrickle.database import exported_snapshot, jdbc_target, jdbc_text
from tests.conftest import Database
from tests.equivalence.oracle import differences

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "key": "SELECT id FROM d WHERE j ? 'a'",
    "any_key": "SELECT id FROM d WHERE j ?| ARRAY['b', 'c?']",
    "all_keys": "SELECT id FROM d WHERE j ?& ARRAY['a', 'b']",
    "path": "SELECT id, j @? '$.a ? (@ > 1)' AS found FROM d",
    "geometry": "SELECT id FROM d WHERE lseg(point(0, 0), point(id, 0)) ?-| lseg(point(0, -1), point(0, 1))",
    "mixed": "SELECT count(*) AS \"how many?\" FROM d JOIN e ON d.id = e.id WHERE d.j ? e.k AND e.k <> E'\\\\?'",
    "schema": "SELECT id FROM \"why?\".f WHERE j ? 'a'",
}
QUOTED = [
    "SELECT '?' AS c",
    "SELECT 'it''s ? ''' AS c",
    r"SELECT E'\'?' || e'\\' AS c",
    r"SELECT 'C:\' || '?' AS c",
    "SELECT U&'d!003F?' UESCAPE '!' AS c",
    r"SELECT U&'d\003F?' || text'C:\' AS c",
    "SELECT $$?$$ || $a$ $$ ? $b$ $a$ AS c",
    'SELECT "c?" AS c FROM (SELECT 1) AS q ("c?")',
    'SELECT "a""?" AS c FROM (SELECT 2) AS q ("a""?")',
    "SELECT 1 AS c -- ? it's\n, '{\"a\": 1}'::jsonb ? 'a' AS d",
    "SELECT 1 /* ? ' /* ? */ \" ? */ AS c, '{\"a\": 1}'::jsonb ? 'a' AS d",
    "SELECT '[\"?\"]'::jsonb ?| ARRAY['?'] AS c",
]


@pytest.mark.parametrize("query", QUOTED)
def test_only_operators_are_doubled(db: Database, spark: SparkSession, query: str) -> None:
    rows = db.execute(query)
    with exported_snapshot(db.dsn) as snapshot:
        found = PinnedReader(spark, jdbc_target(db.connect()), snapshot.name, ()).read(query).collect()
    assert [tuple(row) for row in found] == rows


@pytest.mark.repeats
def test_each_operator_with_a_question_mark_is_refreshed_by_spark(db: Database, spark: SparkSession) -> None:
    db.execute("CREATE TABLE d (id int PRIMARY KEY, j jsonb)")
    db.execute("CREATE TABLE e (id int PRIMARY KEY, k text)")
    db.execute('CREATE SCHEMA "why?"')
    db.execute('CREATE TABLE "why?".f (id int PRIMARY KEY, j jsonb)')
    rows = """(1, '{"a": 1}'), (2, '{"a": 2, "b": 3}'), (3, '["c?"]'), (4, NULL)"""
    with pytrickle.connect(db.dsn, spark, small_delta_rows=0, direct_delta_rows=0) as client:
        for name, query in QUERIES.items():
            client.create_stream_table(name, query)
        client.tick()
        for batch in (
            f"INSERT INTO d VALUES {rows}",
            """INSERT INTO e VALUES (1, 'a'), (2, 'x'), (3, 'c?')""",
            f'INSERT INTO "why?".f VALUES {rows}',
            """UPDATE d SET j = '{"b": 5, "a": 0}' WHERE id <= 2""",
            "DELETE FROM d WHERE id = 2",
        ):
            db.execute(batch)
            results = client.tick()
            whole = {result.stream_table for result in results if result.action == "FULL"}
            assert whole <= {"public.geometry"}, results
            assert {result.action for result in results} <= {"DIFFERENTIAL", "NO_DATA", "FULL"}, results
            assert not any("failed" in result.reason for result in results)
            for name, query in QUERIES.items():
                assert not differences(db.connect(), name, query, False), (name, batch)


def test_a_question_mark_within_an_identifier_or_behind_one_is_told_apart() -> None:
    assert jdbc_text("SELECT a$b$?c FROM type'?'") == "SELECT a$b$??c FROM type'?'"
    assert jdbc_text("SELECT name'\\' ? 1") == "SELECT name E'\\\\' ?? 1"
    assert jdbc_text("SELECT ? ?? ?-| /* open ?") == "SELECT ?? ???? ??-| /* open ?"
