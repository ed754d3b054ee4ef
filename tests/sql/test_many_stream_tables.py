"""What is asked about many stream tables costs what there is of them, not the product of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import Database

SOURCES, EACH = 12, 4
READ = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_sys_tables WHERE relid = 'pg_class'::regclass"
ASK = "SELECT count(r.sentence) FROM pgtrickle.pgt_stream_tables AS t, pgtrickle_private.missing_right(t.pgt_id) AS r"
CALLS = "SELECT funcname, calls FROM pg_stat_xact_user_functions"
# The planner then expects thousands of them.
THOUSANDS = """
UPDATE pg_class SET relpages = pg_relation_size(oid) / 8192, reltuples = 5000
WHERE oid IN ('pgtrickle.pgt_dependencies'::regclass, 'pgtrickle.pgt_stream_tables'::regclass)
"""
BODY = "SELECT prosrc FROM pg_proc WHERE oid = 'pgtrickle.dag()'::regprocedure"


@pytest.fixture
def fleet(db: Database) -> Database:
    """Stream tables over several sources, none of which reads another one."""
    for source in range(SOURCES):
        db.execute(f"CREATE TABLE s{source} (id int PRIMARY KEY, amount int NOT NULL)")
        for number in range(EACH):
            query = f"SELECT id, amount + {number} AS amount FROM s{source}"
            db.execute("SELECT pgtrickle.create_stream_table(%s, %s)", f"t{source}_{number}", query)
    return db


def test_whether_rights_are_missing_is_asked_without_reading_all_relations(fleet: Database) -> None:
    with fleet.connect() as connection, connection.transaction():
        assert connection.execute(ASK).fetchone() == (0,)
        ((read,),) = connection.execute(READ).fetchall()
    # Its table, its view and a change buffer, but not the hundreds of others.
    assert SOURCES * EACH <= read <= 40 * SOURCES * EACH


def test_only_what_a_group_concerns_is_decided_about(fleet: Database) -> None:
    assert _decided(fleet) == 0
    fleet.execute("SELECT pgtrickle.create_watermark_group('first', ARRAY['s0'])")
    assert _decided(fleet) == EACH
    fleet.execute("SELECT pgtrickle.gate_source('s1', 'bulk load')")
    assert _decided(fleet) == 2 * EACH


def _decided(fleet: Database) -> int:
    """Return how many stream tables the status decides about one by one."""
    with fleet.connect() as connection, connection.transaction():
        connection.execute("SET LOCAL track_functions = 'all'")
        assert connection.execute("SELECT count(*) FROM pgtrickle.pgt_status()").fetchone() == (SOURCES * EACH,)
        calls: dict[str, int] = dict(connection.execute(CALLS).fetchall())
    assert calls["judged_tables"] == 1
    return calls.get("gating_decision", 0)


def test_the_graph_of_many_stream_tables_is_read_in_linear_time(fleet: Database) -> None:
    relations = SOURCES * (1 + EACH)
    with fleet.connect() as connection, connection.transaction():
        connection.execute(THOUSANDS)
        connection.execute("SET LOCAL search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp")
        connection.execute("SET LOCAL track_functions = 'all'")
        ((body,),) = connection.execute(BODY).fetchall()
        ((plan,),) = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {body}").fetchall()
        calls: dict[str, int] = dict(connection.execute(CALLS).fetchall())
    assert "upstream_tables" not in calls
    (root,) = plan
    assert root["Plan"]["Actual Rows"] == relations
    assert max(_rows(root["Plan"])) <= 3 * relations


def _rows(plan: dict[str, Any]) -> Iterator[int]:
    yield plan["Actual Rows"] * plan["Actual Loops"]
    for below in plan.get("Plans", ()):
        yield from _rows(below)
