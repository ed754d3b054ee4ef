"""Scripts that create, alter, drain and repair in the extension's words: done, named in a notice, or refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.conftest import Database
from tests.mirror.conftest import Mirror
from tests.sql.checks import refused

QUERY = "'SELECT id FROM t'"
# What create_stream_table takes in the extension's order, each with something else than its default.
POSITIONS = (
    "'s', 'SELECT id FROM t', '1s', 'differential', false, 'NONE', 'Slowest', 'WAL', true, true, 'id', 3, 0.5, 'id',"
    " false, 'citus', 80, '5 s', 'EXTERNAL'"
)
NO_EFFECT = (
    "without effect here: append_only, cdc_mode, max_delta_fraction, max_differential_joins, "
    "output_distribution_column, partition_by, pooler_compatibility_mode, storage_backend, target_freshness"
)
STORED = (
    "SELECT schedule, refresh_mode, diamond_consistency, diamond_schedule_policy, requested_cdc_mode, is_append_only,"
    " st_partition_key, max_differential_joins, max_delta_fraction, freshness_deadline_ms, orchestration_mode, paused"
    " FROM pgtrickle.pgt_stream_tables"
)


@pytest.fixture
def t(db: Database) -> Database:
    db.execute("CREATE TABLE t (id integer PRIMARY KEY)")
    return db


def notices(db: Database, *statements: str) -> list[str]:
    """Run statements in a session of their own; return the notices."""
    heard: list[str] = []
    with db.connect() as connection:
        connection.add_notice_handler(lambda notice: heard.append(str(notice.message_primary)))
        for statement in statements:
            connection.execute(statement.encode())
    return heard


def create(db: Database, arguments: str, *before: str) -> list[str]:
    return notices(db, *before, f"SELECT pgtrickle.create_stream_table('s', {QUERY}, {arguments})")


def option(db: Database, name: str) -> Any:
    return db.value(f"SELECT {name} FROM pgtrickle.pgt_stream_tables")


def test_arguments_come_in_the_order_of_the_extension_and_are_kept(t: Database) -> None:
    heard = notices(t, f"SELECT pgtrickle.create_stream_table({POSITIONS})")
    assert heard == [NO_EFFECT, "the stream table is filled by the next tick, also with initialize => false"]
    kept = ("1s", "DIFFERENTIAL", "none", "slowest", "wal", True, "id", 3, 0.5, 5000, "EXTERNAL", True)
    assert t.execute(STORED) == [kept]
    assert t.value("SELECT reloptions FROM pg_class WHERE relname = 's'") == ["fillfactor=80"]


def test_defaults_and_what_is_done_anyway_are_taken_in_silence(t: Database) -> None:
    assert create(t, "NULL, cdc_mode => 'trigger', storage_backend => 'HEAP', fuse => 'off', temporal => false") == []
    assert t.execute("SELECT schedule, tier, fuse_mode FROM pgtrickle.pgt_stream_tables") == [
        ("calculated", "hot", "off")
    ]


@pytest.mark.parametrize(
    ("arguments", "sqlstate", "hint"),
    [
        ("refresh_mode => 'Immediate'", "0A000", "the refresh follows the commit"),
        ("temporal => true", "0A000", "as_of"),
        ("cdc_mode => 'magic'", "22023", "auto, trigger or wal"),
        ("storage_backend => 'unlogged'", "22023", "heap or citus"),
        ("max_delta_fraction => 1.5", "22023", "from 0 to 1"),
        ("max_delta_fraction => 'NaN'", "22023", "from 0 to 1"),
        ("max_differential_joins => -1", "22023", "from 0"),
        ("fillfactor => 5", "22023", "from 10 to 100"),
        ("target_freshness => 'soon'", "22023", "ON_COMMIT or MANUAL"),
        ("orchestration_mode => 'NOBODY'", "22023", "managed or external"),
        ("fuse => 'on'", "22023", "Give it a fuse_ceiling"),
        ("fuse => 'maybe'", "22023", "off, on or auto"),
        ("schedule => '*/10'", "22023", "five fields"),
        ("schedule => '5 *'", "22023", "five fields"),
    ],
)
def test_what_would_change_the_rows_or_is_nothing_is_refused(
    t: Database, arguments: str, sqlstate: str, hint: str
) -> None:
    with refused(sqlstate, hint):
        t.execute(f"SELECT pgtrickle.create_stream_table('s', {QUERY}, {arguments})")
    assert t.value("SELECT count(*) FROM pgtrickle.pgt_stream_tables") == 0


def test_a_first_load_that_nobody_can_wait_for_is_told(t: Database) -> None:
    assert create(t, "initialize => true") == ["no refresher runs: the stream table stays empty until one does"]


def test_altering_takes_the_words_of_the_extension(t: Database) -> None:
    create(t, "fuse => 'on', fuse_ceiling => 5")
    heard = notices(
        t,
        "SELECT pgtrickle.alter_stream_table('s', 'SELECT id FROM t WHERE id > 1', '5m', 'full', 'suspended')",
        "SELECT pgtrickle.alter_stream_table('s', tier => 'WARM', post_refresh_action => 'analyze', fuse => 'auto')",
    )
    assert heard == ["without effect here: fuse, post_refresh_action"]
    found = "SELECT defining_query, schedule, refresh_mode, paused, tier, fuse_ceiling FROM pgtrickle.pgt_stream_tables"
    assert t.execute(found) == [("SELECT id FROM t WHERE id > 1", "5m", "FULL", True, "warm", 5)]
    t.execute("SELECT pgtrickle.alter_stream_table('s', status => 'ACTIVE', fuse => 'off')")
    assert t.execute("SELECT paused, fuse_ceiling FROM pgtrickle.pgt_stream_tables") == [(False, None)]
    with refused("22023", "ACTIVE, which resumes it"):
        t.execute("SELECT pgtrickle.alter_stream_table('s', status => 'GONE')")


@pytest.mark.parametrize(
    ("setting", "value", "arguments", "column", "kept"),
    [
        ("diamond_consistency", "none", "tier => 'hot'", "diamond_consistency", "none"),
        ("diamond_consistency", "none", "diamond_consistency => 'atomic'", "diamond_consistency", "atomic"),
        ("diamond_schedule_policy", "slowest", "tier => 'hot'", "diamond_schedule_policy", "slowest"),
        ("allow_circular", "on", "tier => 'hot'", "allow_circular", True),
        ("max_fixpoint_iterations", "7", "tier => 'hot'", "max_fixpoint_iterations", 7),
        ("fuse_default_ceiling", "9", "fuse => 'on'", "fuse_ceiling", 9),
    ],
)
def test_settings_of_the_extension_are_honoured(
    t: Database, setting: str, value: str, arguments: str, column: str, kept: object
) -> None:
    assert create(t, arguments, f"SET pg_trickle.{setting} = '{value}'") == []
    assert option(t, column) == kept


def test_settings_without_effect_are_named_in_one_notice(t: Database) -> None:
    heard = create(
        t, "tier => 'hot'", "SET pg_trickle.log_delta_sql = on", "SET pg_trickle.cdc_paused = on",
        "SET pg_trickle.auto_backoff = true", "SET pg_trickle.cdc_mode = ''",
    )  # fmt: skip
    assert heard == [
        "set for the extension pg_trickle, and without effect here: pg_trickle.cdc_paused, pg_trickle.log_delta_sql"
    ]


@pytest.mark.parametrize(
    ("tolerance", "kept"),
    [
        *((given, timedelta(seconds=30)) for given in ("30.0", "30", "tolerance_secs => 30", "'30'", "'30 seconds'")),
        *((given, timedelta(seconds=30)) for given in ("interval '30 s'", "tolerance => interval '30 s'")),
        ("tolerance => '1 minute'", timedelta(minutes=1)),
        ("0", timedelta(0)),
        ("stale_after => '1 hour'", timedelta(0)),
    ],
)
def test_a_tolerance_is_seconds_or_an_interval(t: Database, tolerance: str, kept: timedelta) -> None:
    t.execute(f"SELECT pgtrickle.create_watermark_group('g', ARRAY['t'], {tolerance})")
    assert t.value("SELECT tolerance FROM pgtrickle.pgt_watermark_groups") == kept


@pytest.mark.parametrize("tolerance", ["-5", "'NaN'::float8", "'infinity'::float8"])
def test_a_tolerance_that_is_no_distance_is_refused(t: Database, tolerance: str) -> None:
    with refused("22023", "seconds of zero or more", message="tolerance"):
        t.execute(f"SELECT pgtrickle.create_watermark_group('g', ARRAY['t'], {tolerance})")


def test_the_timeout_of_stuck_watermarks_becomes_a_limit_of_new_groups(t: Database) -> None:
    create_group = "SELECT pgtrickle.create_watermark_group('g', ARRAY['t'], 0)"
    assert notices(t, "SET pg_trickle.watermark_holdback_timeout = 90", create_group) == []
    limits = t.execute("SELECT stale_after, on_stale FROM pgtrickle.pgt_watermark_groups")
    assert limits == [(timedelta(seconds=90), "hold")]


def test_if_not_exists_and_or_replace(t: Database) -> None:
    make = f"pgtrickle.create_stream_table_if_not_exists('s', {QUERY}, '5s')"
    assert t.value(f"SELECT {make}") == 1
    assert notices(t, f"SELECT {make.replace('5s', '9s')}") == ["the stream table s exists already"]
    assert option(t, "schedule") == "5s"
    filled = "UPDATE pgtrickle.pgt_stream_tables SET reinitialize_reason = NULL, frontier_version = 1"
    replace = "SELECT pgtrickle.create_or_replace_stream_table('s', %s, '7s')"
    t.execute(filled)
    assert t.value(replace, "SELECT id FROM t;") == 1
    assert t.execute("SELECT schedule, reinitialize_reason FROM pgtrickle.pgt_stream_tables") == [("7s", None)]
    t.execute(replace, "SELECT id FROM t WHERE id > 2")
    assert option(t, "defining_query") == "SELECT id FROM t WHERE id > 2"
    assert t.value("SELECT pgtrickle.create_or_replace_stream_table('new', 'SELECT id FROM t')") == 2


@pytest.mark.parametrize(
    ("preset", "kept"),
    [
        ("realtime", ("1s", "DIFFERENTIAL")),
        ("batch", ("5m", "AUTO")),
        ("cost_optimized", ("15m", "AUTO")),
        ("fast_append_only", ("calculated", "DIFFERENTIAL")),
    ],
)
def test_presets(t: Database, preset: str, kept: tuple[str, str]) -> None:
    t.execute(f"SELECT pgtrickle.create_stream_table_{preset}('s', {QUERY})")
    assert t.execute("SELECT schedule, refresh_mode FROM pgtrickle.pgt_stream_tables") == [kept]


def test_policies_alter_one_thing(t: Database) -> None:
    create(t, "NULL")
    for call in (
        "set_stream_table_refresh_policy('s', 'full')",
        "set_stream_table_storage_policy('s', tier => 'COLD')",
        "set_orchestration_mode('s', 'external')",
    ):
        t.execute(f"SELECT pgtrickle.{call}")
    found = "SELECT refresh_mode, tier, paused FROM pgtrickle.pgt_stream_tables"
    assert t.execute(found) == [("FULL", "cold", True)]
    t.execute("SELECT pgtrickle.set_stream_table_sla('s', '10 s'), pgtrickle.set_orchestration_mode('s', 'MANAGED')")
    assert t.execute(found) == [("FULL", "warm", False)]


def test_many_at_once_all_or_none(t: Database) -> None:
    made = t.value("""SELECT pgtrickle.bulk_create('[{"name": "a", "query": "SELECT id FROM t", "tier": "warm"},
        {"name": "b", "query": "SELECT id FROM a", "schedule": "1m"}]')""")
    assert [(one["name"], one["status"]) for one in made] == [("a", "created"), ("b", "created")]
    with refused("22023", "The keys are name, query, schedule"):
        t.execute('SELECT pgtrickle.bulk_create(\'[{"name": "c", "sched": "1m"}]\')')
    altered = (
        'SELECT pgtrickle.bulk_alter_stream_tables(ARRAY[\'a\', \'b\'], \'{"tier": "COLD", "status": "SUSPENDED"}\')'
    )
    assert t.value(altered) == 2
    assert t.execute("SELECT tier, paused FROM pgtrickle.pgt_stream_tables") == [("cold", True)] * 2
    t.execute("SET pg_trickle.max_bulk_api_items = 1")
    with refused("22023", "Use up to 1 at once"):
        t.execute(altered)
    with refused("2BP01"):
        t.execute("SELECT pgtrickle.bulk_drop_stream_tables(ARRAY['a'])")
    assert t.value("SELECT pgtrickle.bulk_drop_stream_tables(ARRAY['a', 'b'])") == 2


def test_a_blown_fuse_takes_no_decision_that_leaves_wrong_rows(t: Database) -> None:
    create(t, "fuse_ceiling => 1")
    t.execute("UPDATE pgtrickle.pgt_stream_tables SET fuse_blown_at = now()")
    with refused("0A000", "Undo the changes in the source"):
        t.execute("SELECT pgtrickle.reset_fuse('s', 'skip_changes')")
    t.execute("SELECT pgtrickle.reset_fuse('s', ' Apply ')")
    assert option(t, "fuse_state") == "armed"


def test_a_drain_keeps_ticks_from_refreshing_until_it_ends(mirror: Mirror) -> None:
    mirror.run("CREATE TABLE t (id int PRIMARY KEY)")
    mirror.filled("SELECT pgtrickle.create_stream_table('s', 'SELECT id FROM t')")
    assert mirror.value("SELECT pgtrickle.is_drained()") is None
    with mirror.refresher():
        assert mirror.value("SELECT pgtrickle.pause_all()")
        assert mirror.value("SELECT pgtrickle.is_drained()")
    mirror.run("INSERT INTO t VALUES (1)")
    assert mirror.tick() == () and mirror.rows("TABLE s") == []
    mirror.refresh("s")
    assert mirror.rows("TABLE s") == [(1,)], "what is asked for is refreshed"
    assert mirror.value("SELECT pgtrickle.resume_all()") and not mirror.value("SELECT pgtrickle.resume_all()")
    assert not mirror.value("SELECT pgtrickle.is_drained()")
    mirror.run("INSERT INTO t VALUES (2)")
    assert [result.action for result in mirror.tick()] == ["DIFFERENTIAL"]


def test_repairs_concern_what_is_damaged_only(mirror: Mirror) -> None:
    mirror.run("CREATE TABLE t (id int PRIMARY KEY)")
    mirror.filled("SELECT pgtrickle.create_stream_table('s', 'SELECT id FROM t')")
    assert mirror.value("SELECT pgtrickle.repair_stream_table('s')") == "there is nothing to repair"
    number = mirror.value("SELECT 't'::regclass::oid::integer")
    mirror.run(f"DROP TRIGGER pgtrickle_insert_{number} ON t")
    assert mirror.value("SELECT pgtrickle.repair_stream_table('s')") == "capture was installed anew on public.t"
    assert mirror.value("SELECT pgtrickle.rebuild_cdc_triggers()") == "done"
    mirror.tick()
    mirror.run("SELECT pgtrickle.reinitialize_stream_table('s')")
    assert [result.action for result in mirror.tick()] == ["REINITIALIZE"]
