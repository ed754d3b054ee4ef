"""Altering, dropping and asking for a refresh."""

import json
from datetime import timedelta

import psycopg
import pytest

from tests.conftest import Database
from tests.sql.checks import buffer_of, catalog_state, logged, refused


@pytest.fixture
def chain(db: Database) -> Database:
    db.execute("CREATE TABLE t (a integer, b integer)")
    db.execute("SELECT pgtrickle.create_stream_table('s1', 'SELECT a, b FROM t')")
    db.execute("SELECT pgtrickle.create_stream_table('s2', 'SELECT a FROM s1')")
    db.execute("SELECT pgtrickle.create_stream_table('s3', 'SELECT s1.a FROM s1, s2')")
    return db


def test_options_left_out_stay(chain: Database) -> None:
    chain.execute("SELECT pgtrickle.alter_stream_table('s1', schedule => '5 minutes', require_watermark => true)")
    chain.execute("SELECT pgtrickle.alter_stream_table('s1', refresh_mode => 'FULL', watermark_gating => 'none')")
    assert chain.execute(
        "SELECT schedule, refresh_mode, watermark_gating, require_watermark FROM "
        "pgtrickle.pgt_stream_tables WHERE pgt_name = 's1'"
    ) == [("5 minutes", "FULL", "none", True)]


OPTIONS = (
    "SELECT schedule_timezone, tier, watermark_tolerance, gate_deadline, diamond_consistency, diamond_schedule_policy,"
    " fuse_ceiling, statement_timeout FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 's1'"
)


def test_options_that_are_reset_get_their_defaults_and_no_others_do(chain: Database) -> None:
    before = chain.execute(OPTIONS)
    chain.execute(
        "SELECT pgtrickle.alter_stream_table('s1', schedule_timezone => 'Asia/Tokyo', tier => 'cold',"
        " watermark_tolerance => '5 s', gate_deadline => '1 h', diamond_consistency => 'none',"
        " diamond_schedule_policy => 'slowest', fuse_ceiling => 10, statement_timeout => '1 min')"
    )
    changed = (
        "Asia/Tokyo",
        "cold",
        timedelta(seconds=5),
        timedelta(hours=1),
        "none",
        "slowest",
        10,
        timedelta(minutes=1),
    )
    assert chain.execute(OPTIONS) == [changed]
    some = "'gate_deadline', 'fuse_ceiling', 'tier', 'statement_timeout'"
    chain.execute(f"SELECT pgtrickle.alter_stream_table('s1', reset => ARRAY[{some}])")
    assert chain.execute(OPTIONS) == [("Asia/Tokyo", "hot", timedelta(seconds=5), None, "none", "slowest", None, None)]
    names = "schedule_timezone,watermark_tolerance,diamond_consistency,diamond_schedule_policy"
    chain.execute(f"SELECT pgtrickle.alter_stream_table('s1', reset => string_to_array('{names}', ','))")
    assert chain.execute(OPTIONS) == before


@pytest.mark.parametrize(
    ("call", "sqlstate"),
    [
        ("alter_stream_table('s1', tier => 'x')", "22023"),
        ("alter_stream_table('s1', reset => ARRAY['colour'])", "22023"),
        ("alter_stream_table('s1', reset => ARRAY['pgt_id'])", "22023"),
        ("alter_stream_table('s1', reset => ARRAY[NULL])", "22004"),
        ("alter_stream_table('nowhere', schedule => '1 minute')", "42704"),
        ("alter_stream_table('t', schedule => '1 minute')", "42704"),
        ("alter_stream_table(NULL)", "42704"),
        ("alter_stream_table('s1', schedule => 'x')", "22023"),
        ("alter_stream_table('s1', refresh_mode => 'x')", "22023"),
        ("alter_stream_table('s1', watermark_gating => 'x')", "22023"),
        ("alter_stream_table('clock', refresh_mode => 'DIFFERENTIAL')", "0A000"),
        ("drop_stream_table('nowhere')", "42704"),
        ("drop_stream_table('t')", "42704"),
        ("drop_stream_table('s1')", "2BP01"),
        ("refresh_stream_table('nowhere')", "42704"),
        ("refresh_stream_table('t')", "42704"),
    ],
)
def test_bad_calls_are_refused_and_change_nothing(chain: Database, call: str, sqlstate: str) -> None:
    chain.execute("SELECT pgtrickle.create_stream_table('clock', 'SELECT now() AS at')")
    before = catalog_state(chain)
    with refused(sqlstate):
        chain.execute(f"SELECT pgtrickle.{call}")
    assert catalog_state(chain) == before


def test_drop_with_cascade_takes_the_readers_and_all_capture_with_it(chain: Database) -> None:
    chain.execute("CREATE VIEW on_top AS SELECT a FROM s3")
    chain.execute("CREATE TABLE pgtrickle_state.state_1 (a integer)")
    chain.execute("SELECT pgtrickle.drop_stream_table('s1', cascade => true)")
    assert chain.execute(
        "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'v') AND "
        "relnamespace::regnamespace::text IN ('public', 'pgtrickle_state', "
        "'pgtrickle_changes')"
    ) == [("t",)]
    assert chain.execute("SELECT tgname FROM pg_trigger WHERE tgrelid = 't'::regclass") == []
    assert chain.execute("SELECT proname FROM pg_proc WHERE pronamespace = 'pgtrickle_changes'::regnamespace") == []
    chain.execute("INSERT INTO t VALUES (1)")


def test_drop_leaves_capture_that_others_need(chain: Database) -> None:
    chain.execute("SELECT pgtrickle.create_stream_table('other', 'SELECT a FROM t')")
    chain.execute("SELECT pgtrickle.drop_stream_table('s1', cascade => true)")
    chain.execute("INSERT INTO t VALUES (1, 2)")
    assert logged(chain, "t", "a") == [(1, 1)]
    assert chain.value("SELECT captured_columns ? 'b' FROM pgtrickle.pgt_change_tracking") is False


def test_a_view_on_a_stream_table_keeps_it_from_being_dropped(chain: Database) -> None:
    chain.execute("CREATE VIEW on_top AS SELECT a FROM s3")
    with pytest.raises(Exception, match="on_top"):
        chain.execute("SELECT pgtrickle.drop_stream_table('s3')")
    assert chain.value("SELECT count(*) FROM pgtrickle.pgt_stream_tables") == 3


def test_what_is_left_of_a_table_dropped_by_hand_can_be_dropped(chain: Database) -> None:
    chain.execute("ALTER EVENT TRIGGER pgtrickle_drops DISABLE; DROP TABLE s3")
    chain.execute("SELECT pgtrickle.drop_stream_table('s3')")
    assert chain.value("SELECT count(*) FROM pgtrickle.pgt_stream_tables") == 2


def test_a_renamed_stream_table_is_found_by_its_new_name_alone(chain: Database) -> None:
    chain.execute("ALTER TABLE s3 RENAME TO s4")
    with pytest.raises(psycopg.Error, match="there is no stream table 's3'"):
        chain.execute("SELECT pgtrickle.drop_stream_table('s3')")
    chain.execute("SELECT pgtrickle.drop_stream_table('s4')")


def test_a_name_means_no_stream_table_in_a_schema_outside_the_search_path(chain: Database) -> None:
    chain.execute("CREATE SCHEMA app")
    chain.execute("SELECT pgtrickle.create_stream_table('app.s4', 'SELECT a FROM t')")
    for call in ("drop_stream_table('s4')", "alter_stream_table('s4', tier => 'cold')", "refresh_stream_table('s4')"):
        with pytest.raises(psycopg.Error, match="there is no stream table 's4'"):
            chain.execute(f"SELECT pgtrickle.{call}")
    chain.execute("SELECT pgtrickle.create_or_replace_stream_table('s4', 'SELECT b FROM t')")
    columns = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attname IN ('a', 'b')"
    assert (chain.value(columns, "app.s4"), chain.value(columns, "public.s4")) == ("a", "b")


def test_a_request_is_filed_and_notified_at_commit(chain: Database) -> None:
    listener, asker = chain.connect(), chain.connect(autocommit=False)
    listener.execute("LISTEN pgtrickle_refresh")
    (request,) = asker.execute("SELECT pgtrickle.refresh_stream_table('s2')").fetchone() or ()
    listener.execute("SELECT 1")
    assert list(listener.notifies(timeout=0)) == []
    asker.commit()
    (notification,) = listener.notifies(timeout=5, stop_after=1)
    assert json.loads(notification.payload) == {"pgt_id": 2, "request_id": request}
    assert chain.execute("SELECT request_id, pgt_id, requested_by FROM pgtrickle.pgt_refresh_requests") == [
        (request, 2, "postgres")
    ]


def test_writes_of_a_refresh_reach_the_buffer_of_the_stream_table(chain: Database) -> None:
    connection = chain.connect(autocommit=False)
    connection.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET refresh_xid = pg_current_xact_id() WHERE pgt_name = 's1'"
    )
    connection.execute("INSERT INTO s1 VALUES (1, 1), (1, 2)")
    connection.commit()
    assert logged(chain, "s1", "a") == [(2, 1)]
    assert buffer_of(chain, "s1") != buffer_of(chain, "t")


def test_dropping_gives_up_when_the_callers_lock_timeout_is_over(chain: Database) -> None:
    writer = chain.connect(autocommit=False)
    writer.execute("INSERT INTO t VALUES (1, 1)")
    before = catalog_state(chain)
    with chain.connect() as caller:
        caller.execute("SET lock_timeout = '100ms'")
        with refused("55P03", "long transaction"):
            caller.execute("SELECT pgtrickle.drop_stream_table('s1', cascade => true)")
        assert caller.execute("SHOW lock_timeout").fetchone() == ("100ms",)
    assert catalog_state(chain) == before
    writer.rollback()
    chain.execute("SELECT pgtrickle.drop_stream_table('s1', cascade => true)")
