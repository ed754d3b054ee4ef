"""Sessions whose role has triggers switched off (session_replication_role): the catalog is kept in order there too."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.conftest import Database
from tests.sql.checks import buffer_of

CAPTURED = "SELECT source_name FROM pgtrickle.pgt_change_tracking"


@pytest.fixture
def session(db: Database) -> psycopg.Connection[Any]:
    """A session without triggers, in a database with a table that two stream tables read."""
    db.execute("CREATE TABLE t (a integer)")
    for name in ("s1", "s2"):
        db.execute(f"SELECT pgtrickle.create_stream_table('{name}', 'SELECT a FROM t')")
    return db.connect(options="-c session_replication_role=replica")


def test_a_dropped_stream_table_leaves_nothing_behind(session: psycopg.Connection[Any], db: Database) -> None:
    db.execute("SELECT pgtrickle.refresh_stream_table('s1', wait => false)")
    db.execute("SELECT pgtrickle.create_refresh_group('both', ARRAY['s1', 's2'])")
    session.execute("SELECT pgtrickle.drop_stream_table('s1')")
    assert db.value("SELECT count(*) FROM pgtrickle.pgt_dependencies") == 1
    assert db.execute("SELECT FROM pgtrickle.pgt_refresh_requests") == []
    assert db.execute("SELECT FROM pgtrickle.pgt_refresh_groups") == []
    session.execute("SELECT pgtrickle.drop_stream_table('s2')")
    assert db.execute(CAPTURED) == []


def test_a_frontier_that_cannot_be_read_is_refused(session: psycopg.Connection[Any], db: Database) -> None:
    cut = db.value("SELECT pgtrickle.current_cut()::text")
    db.execute("INSERT INTO t VALUES (1)")
    db.execute("UPDATE pgtrickle.pgt_dependencies SET frontier = pgtrickle.current_cut() WHERE pgt_id = 1")
    db.execute("SELECT pgtrickle.clean_change_buffers()")
    assert db.value(f"SELECT count(*) FROM {buffer_of(db, 't')}") == 0
    with pytest.raises(psycopg.errors.SerializationFailure):
        session.execute("UPDATE pgtrickle.pgt_dependencies SET frontier = %s::pgtrickle.cut WHERE pgt_id = 2", [cut])


def test_a_group_knows_the_names_of_its_sources_and_takes_its_limits_along(
    session: psycopg.Connection[Any], db: Database
) -> None:
    session.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['t'])")
    assert db.value("SELECT source_names FROM pgtrickle.pgt_watermark_groups") == ["public.t"]
    session.execute("SELECT pgtrickle.set_alert_limits(group_name => 'g', lag => '1 hour')")
    session.execute("SELECT pgtrickle.drop_watermark_group('g')")
    assert db.execute("SELECT FROM pgtrickle.pgt_alert_limits") == []


def test_a_source_that_was_dropped_takes_its_partitions_along(session: psycopg.Connection[Any], db: Database) -> None:
    db.execute("CREATE TABLE u (a integer)")
    session.execute("SELECT pgtrickle.advance_partitions('u', %s::jsonb)", ['{"p0": "2026-01-01 12:00Z"}'])
    assert db.value("SELECT count(*) FROM pgtrickle.pgt_source_partitions") == 1
    session.execute("DROP TABLE u")
    session.execute("SELECT pgtrickle.trim_history('1 day')")
    assert db.execute("SELECT FROM pgtrickle.pgt_source_partitions") == []
