"""Staging tables that refreshes left behind are dropped, unless somebody still writes to them."""

from pytrickle.apply.staging_table import STAGING_LOCK
from tests.conftest import Database
from tests.equivalence.local_engine import local_client


def staging(db: Database) -> list[str]:
    return [
        name for (name,) in db.execute("SELECT relname::text FROM pg_class WHERE relname LIKE 'staging%' ORDER BY 1")
    ]


def test_a_staging_table_in_use_is_left_for_the_next_refresh(db: Database) -> None:
    for name in ("staging_1_0a", "staging_1_ff", "staging_11_0a"):
        db.execute(f"CREATE TABLE pgtrickle_changes.{name} (a integer)")
    executor = db.connect(autocommit=False)
    executor.execute("INSERT INTO pgtrickle_changes.staging_1_0a VALUES (1)")
    assert db.value("SELECT pgtrickle_private.drop_staging(1)") == 1
    assert staging(db) == ["staging_11_0a", "staging_1_0a"]
    executor.rollback()
    assert db.value("SELECT pgtrickle_private.drop_staging(1)") == 1
    assert staging(db) == ["staging_11_0a"]


def test_dropping_a_stream_table_drops_its_staging_tables(db: Database) -> None:
    db.execute("CREATE TABLE t (a integer)")
    number = db.value("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM t')")
    db.execute(f"CREATE TABLE pgtrickle_changes.staging_{number}_0a (a integer)")
    db.execute("SELECT pgtrickle.drop_stream_table('s')")
    assert staging(db) == []


def test_what_was_given_up_is_dropped_by_the_first_tick_but_not_what_somebody_stages(db: Database) -> None:
    db.execute("CREATE TABLE t (a integer)")
    db.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM t')")
    for name in ("staging_1_0a", "staging_1_ff", "staging_2_0b", "staging_77_0c", "staging_note"):
        db.execute(f"CREATE TABLE pgtrickle_changes.{name} (a integer)")
    stages, executor = db.connect(), db.connect(autocommit=False)
    stages.execute("SELECT pg_advisory_lock(%s, 2)", (STAGING_LOCK,))
    executor.execute("INSERT INTO pgtrickle_changes.staging_77_0c VALUES (1)")
    with local_client(db.dsn) as (client, _):
        client.tick()
    assert staging(db) == ["staging_2_0b", "staging_77_0c", "staging_note"]
    stages.close()
    executor.rollback()
    with local_client(db.dsn) as (client, _):
        client.tick()
    assert staging(db) == ["staging_note"]
