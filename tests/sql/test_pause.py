"""Pausing and resuming one stream table, or all."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Database
from tests.sql.checks import create, refused

STATES = (
    "SELECT pgt_name, paused, status, consecutive_failures, retry_at IS NULL"
    " FROM pgtrickle.pgt_stream_tables ORDER BY 1"
)


@pytest.fixture
def two(tables: Database) -> Database:
    create(tables, "SELECT a FROM t", "s1")
    create(tables, "SELECT a FROM u", "s2")
    return tables


def paused(db: Database) -> list[str]:
    return [name for name, is_paused, *_ in db.execute(STATES) if is_paused]


def test_one_is_paused_and_resumed_by_name_and_all_without(two: Database) -> None:
    two.execute("CREATE SCHEMA mine")
    two.execute("ALTER TABLE s2 SET SCHEMA mine")
    assert two.value("SELECT pgtrickle.pause_stream_table('s2', 'mine')") == 1
    assert paused(two) == ["s2"]
    assert two.value("SELECT pgtrickle.pause_stream_table()") == 1
    assert paused(two) == ["s1", "s2"]
    assert two.value("SELECT pgtrickle.resume_stream_table('s1')") == 1
    assert paused(two) == ["s2"]
    assert two.value("SELECT pgtrickle.resume_stream_table()") == 1
    assert paused(two) == []
    assert two.value("SELECT pgtrickle.resume_stream_table()") == 0


@pytest.mark.parametrize("function", ["pause", "resume"])
def test_an_unknown_name_is_refused_and_changes_nothing(two: Database, function: str) -> None:
    before = two.execute(STATES)
    with refused("42704"):
        two.execute(f"SELECT pgtrickle.{function}_stream_table('nowhere')")
    assert two.execute(STATES) == before


def test_resuming_clears_what_failures_left_behind(two: Database) -> None:
    two.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET status = 'SUSPENDED', consecutive_failures = 10,"
        " retry_at = now() + interval '1 hour', frontier_version = CASE pgt_name WHEN 's1' THEN 3 ELSE 0 END"
    )
    assert two.value("SELECT pgtrickle.resume_stream_table()") == 2
    assert two.execute(STATES) == [("s1", False, "ACTIVE", 0, True), ("s2", False, "INITIALIZING", 0, True)]
    two.execute("UPDATE pgtrickle.pgt_stream_tables SET status = 'ERROR', consecutive_failures = 1")
    two.execute("SELECT pgtrickle.resume_stream_table('s1')")
    assert two.execute(STATES) == [("s1", False, "ERROR", 0, True), ("s2", False, "ERROR", 1, True)]


def test_resuming_wakes_the_refresher(two: Database) -> None:
    listener = two.connect()
    listener.execute("LISTEN pgtrickle_refresh")
    two.execute("SELECT pgtrickle.pause_stream_table()")
    two.execute("SELECT pgtrickle.resume_stream_table('s2')")
    two.execute("SELECT pgtrickle.resume_stream_table()")
    payloads = [json.loads(n.payload) for n in listener.notifies(timeout=5, stop_after=2)]
    assert payloads == [{"pgt_id": 2}, {"pgt_id": None}]
