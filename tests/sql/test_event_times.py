"""Declaring event times: what is refused, whose rights count, and what damage is noticed."""

from typing import Any

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.sql.checks import refused
from tests.sql.late import PARTITIONED, advance, at, declared, ids, ledger, set_event_time

WIDE = (
    "CREATE TABLE events (id integer, at timestamptz, local timestamp, day date, note text, "
    "stored timestamp GENERATED ALWAYS AS (local) STORED)"
)
PROBLEM = "SELECT problem FROM pgtrickle.event_times()"


@pytest.mark.parametrize(
    ("call", "sqlstate", "hint"),
    [
        ("'events', 'note'", "42804", "timestamptz, or one of type timestamp or date together with time_zone"),
        ("'events', 'id'", "42804", "timestamptz"),
        ("'events', 'nothing'", "42703", "column"),
        ("'events', 'ctid'", "42703", "column"),
        ("'events', NULL", "22004", "column"),
        ("NULL, 'at'", "22004", "table"),
        ("'events', 'local'", "22004", "a timestamp without time zone alone is no moment"),
        ("'events', 'day'", "22004", "a date alone is no moment"),
        ("'events', 'day', time_zone => 'Mars/Olympus'", "22023", "pg_timezone_names"),
        ("'events', 'at', time_zone => 'UTC'", "22023", "a moment by itself"),
        ("'events', 'at', '0'", "22023", "longer than zero"),
        ("'events', 'at', '-1 day'", "22023", "longer than zero"),
        ("'events', 'at', '1001 years'", "22023", "1000 years"),
        ("'events', 'stored', '1 day', 'UTC'", "42P17", "leave too_late out"),
        ("'looked_at', 'at'", "42809", "table"),
        ("'copied', 'at'", "42809", "table"),
        ("'remembered', 'at'", "42809", "table"),
        ("'pg_class', 'relname'", "42809", "table of your own"),
    ],
)
def test_what_is_no_exact_event_time_is_refused(shop_of_times: Database, call: str, sqlstate: str, hint: str) -> None:
    with refused(sqlstate, hint, "invalid_argument"):
        shop_of_times.execute(f"SELECT pgtrickle.set_event_time({call})")
    assert shop_of_times.execute("SELECT * FROM pgtrickle.event_times()") == []


@pytest.fixture(scope="module")
def shop_of_times(servers: Any) -> Any:
    """One database for all refusals, which leave nothing behind."""
    from tests.conftest import OLDEST, TEMPLATE, fresh

    with fresh(servers(OLDEST), TEMPLATE) as db:
        db.execute(WIDE)
        db.execute("CREATE VIEW looked_at AS SELECT * FROM events")
        db.execute("CREATE UNLOGGED TABLE remembered (at timestamptz)")
        db.execute("SELECT pgtrickle.create_stream_table('copied', 'SELECT at FROM events')")
        yield db


def test_a_declaration_is_shown_and_can_be_replaced(db: Database) -> None:
    declared(db, WIDE, too_late="1 hour")
    shown = "SELECT source, column_name, time_zone, too_late::text, declared_by, problem FROM pgtrickle.event_times()"
    assert db.execute(shown) == [("public.events", "at", None, "01:00:00", "postgres", None)]
    assert db.value("SELECT event_time FROM pgtrickle.watermarks()") == "at"
    set_event_time(db, column_name="day", time_zone="UTC")
    assert db.execute(shown) == [("public.events", "day", "UTC", None, "postgres", None)]
    db.execute("INSERT INTO events (id, at, day) VALUES (1, %s, '2026-03-01')", at("09:00"))
    db.execute("INSERT INTO events (id, at, day) VALUES (2, %s, '2026-02-28')", at("13:00"))
    assert ledger(db) == [(2, "loaded")]
    db.execute("SELECT pgtrickle.set_event_time('events', 'stored', time_zone => 'UTC')")
    db.execute("INSERT INTO events (id, local) VALUES (3, '2026-03-01 11:00')")
    assert ledger(db) == [(2, "loaded"), (3, "loaded")]


def test_a_loader_needs_no_rights_on_the_ledger(db: Database) -> None:
    declared(db, too_late="1 hour")
    db.create_role("loader")
    db.execute("GRANT INSERT ON events TO loader")
    loader = db.connect(user="loader")
    loader.execute("INSERT INTO events VALUES (1, %s), (2, %s)", (at("11:00"), at("09:00")))
    assert ledger(db, "arrived_by") == [(1, "loaded", "loader"), (2, "kept_out", "loader")]
    for call in ("late_rows('events')", "replay_late_rows('events')", "discard_late_rows('events', '{2}')"):
        with refused("42501", "GRANT SELECT ON public.events TO loader", "insufficient_privilege"):
            loader.execute(f"SELECT pgtrickle.{call}")
    assert loader.execute("SELECT * FROM pgtrickle.late_rows()").fetchall() == []
    with pytest.raises(Exception, match="permission denied for function"):
        loader.execute("SELECT pgtrickle.set_event_time('events', 'at')")


def test_a_reader_may_list_and_only_who_may_insert_as_well_may_replay(db: Database) -> None:
    declared(db, too_late="1 hour")
    db.execute("INSERT INTO events VALUES (1, %s)", at("09:00"))
    db.create_role("reader")
    db.execute("GRANT SELECT ON events TO reader")
    reader = db.connect(user="reader")
    assert len(reader.execute("SELECT * FROM pgtrickle.late_rows()").fetchall()) == 1
    for call in ("replay_late_rows('events')", "discard_late_rows('events', '{1}')"):
        with refused("42501", "GRANT INSERT ON public.events TO reader", "insufficient_privilege"):
            reader.execute(f"SELECT pgtrickle.{call}")
    db.execute("GRANT INSERT ON events TO reader")
    assert reader.execute("SELECT pgtrickle.replay_late_rows('events')").fetchone() == (1,)
    assert (ids(db), ledger(db, "settled_by")) == ([1], [(1, "replayed", "reader")])


def test_row_security_hides_the_ledger_from_those_it_concerns(db: Database) -> None:
    declared(db, too_late="1 hour")
    db.execute("INSERT INTO events VALUES (1, %s)", at("09:00"))
    db.create_role("reader")
    db.execute("GRANT SELECT, INSERT ON events TO reader")
    db.execute("ALTER TABLE events ENABLE ROW LEVEL SECURITY")
    reader = db.connect(user="reader")
    assert reader.execute("SELECT * FROM pgtrickle.late_rows()").fetchall() == []
    with refused("42501", "row security"):
        reader.execute("SELECT pgtrickle.replay_late_rows('events')")
    db.execute("ALTER ROLE reader BYPASSRLS")
    assert len(reader.execute("SELECT * FROM pgtrickle.late_rows()").fetchall()) == 1


def test_a_replay_runs_with_the_rights_of_the_caller(db: Database) -> None:
    """The owner of a source could otherwise run what they like as the owner of the catalog, by a trigger or a cast."""
    db.create_role("mallory")
    db.execute("CREATE SCHEMA mallory AUTHORIZATION mallory")
    db.execute("GRANT mallory TO CURRENT_USER")
    mallory = db.connect()
    mallory.execute("SET SESSION AUTHORIZATION mallory; SET search_path = mallory")
    mallory.execute("CREATE TABLE ran (as_user text)")
    for name, argument, result in (("spy", "", "trigger"), ("as_json", "mood", "json"), ("as_text", "mood", "text")):
        if name == "as_json":
            mallory.execute("CREATE TYPE mood AS ENUM ('bad')")
        mallory.execute(
            f"CREATE FUNCTION {name}({argument}) RETURNS {result} LANGUAGE plpgsql AS $$ BEGIN "
            f"INSERT INTO mallory.ran VALUES (current_user); RETURN {'NEW' if result == 'trigger' else 'NULL'}; END $$"
        )
    mallory.execute("CREATE CAST (mood AS json) WITH FUNCTION as_json(mood)")
    mallory.execute("CREATE CAST (mood AS text) WITH FUNCTION as_text(mood) AS IMPLICIT")
    mallory.execute("CREATE TABLE events (id integer, at timestamptz, mood mood)")
    mallory.execute("CREATE TRIGGER spy BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION spy()")
    set_event_time(db, "mallory.events", too_late="1 hour")
    advance(db, "12:00", "mallory.events")
    mallory.execute("INSERT INTO events VALUES (1, %s, 'bad'), (2, %s, 'bad')", (at("11:00"), at("09:00")))
    mallory.execute("SELECT pgtrickle.replay_late_rows('events')")
    assert ids(db, "mallory.events") == [1, 2]
    assert set(db.execute("SELECT as_user FROM mallory.ran")) == {("mallory",)}


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("ALTER TABLE {relation} DISABLE TRIGGER pgtrickle_late_insert_1", "was disabled"),
        ("DROP TRIGGER pgtrickle_late_update_1 ON events", "is missing"),
        ("ALTER TABLE events ADD COLUMN more integer", "columns of public.events changed"),
        (
            "CREATE TABLE third PARTITION OF events FOR VALUES FROM ('2026-04-01') TO ('2026-05-01')",
            "on public.third is missing",
        ),
    ],
)
def test_damage_is_shown_and_set_right_by_the_next_tick(db: Database, damage: str, problem: str) -> None:
    declared(db, PARTITIONED.replace("TO (MAXVALUE)", "TO ('2026-04-01')"), too_late="3 hours")
    with local_client(db.dsn) as (client, _):
        client.tick()
        assert db.value(PROBLEM) is None
        db.execute(damage.format(relation="early"))
        assert problem in db.value(PROBLEM)
        client.tick()
        assert db.value(PROBLEM) is None
    db.execute("INSERT INTO events (id, at) VALUES (1, %s), (2, %s)", at("11:00"), at("08:00"))
    assert ledger(db) == [(1, "loaded"), (2, "kept_out")]


def test_a_renamed_column_breaks_no_load_and_is_shown(db: Database) -> None:
    declared(db, too_late="1 hour")
    db.execute("ALTER TABLE events RENAME COLUMN at TO happened_at")
    loader = db.connect()
    warnings: list[str] = []
    loader.add_notice_handler(lambda notice: warnings.append(f"{notice.severity}: {notice.message_primary}"))
    loader.execute("INSERT INTO events VALUES (1, %s), (2, %s)", (at("11:00"), at("09:00")))
    assert (ids(db), ledger(db)) == ([1, 2], [])
    assert len(warnings) == 1 and warnings[0].startswith("WARNING: late rows of public.events were not noted: ")
    assert db.value(PROBLEM) == "column at was dropped, renamed or has another type"
    with local_client(db.dsn) as (client, _):
        client.tick()
    set_event_time(db, column_name="happened_at")
    db.execute("INSERT INTO events VALUES (3, %s)", at("11:00"))
    assert (ledger(db), db.value(PROBLEM)) == ([(3, "loaded")], None)


@pytest.mark.parametrize("partitioned", [False, True], ids=["table", "partitions"])
def test_the_limit_goes_by_the_column_that_has_the_name(db: Database, partitioned: bool) -> None:
    table = "CREATE TABLE events (id integer, at timestamptz, loaded timestamptz)"
    parts = " PARTITION BY LIST (id);\nCREATE TABLE one PARTITION OF events DEFAULT" if partitioned else ""
    declared(db, table + parts, too_late="1 hour")
    with local_client(db.dsn) as (client, _):
        client.tick()
        for old, new in (("at", "other"), ("loaded", "at"), ("other", "loaded")):
            db.execute(f"ALTER TABLE events RENAME COLUMN {old} TO {new}")
        assert "goes by another column" in db.value(PROBLEM)
        client.tick()
    assert db.value(PROBLEM) is None
    for number, clocks in enumerate((("09:00", "13:00"), ("13:00", "09:00")), start=1):
        db.execute("INSERT INTO events (id, at, loaded) VALUES (%s, %s, %s)", number, *map(at, clocks))
    assert (ids(db), ledger(db)) == ([2], [(1, "kept_out")])


@pytest.mark.parametrize("change", ["DROP COLUMN at", "ALTER COLUMN at TYPE timestamp"])
def test_under_a_limit_postgresql_keeps_the_column_as_it_is(db: Database, change: str) -> None:
    declared(db, too_late="1 hour")
    with pytest.raises(Exception, match=r"depends? on|used in a trigger definition"):
        db.execute(f"ALTER TABLE events {change}")
    set_event_time(db)
    db.execute(f"ALTER TABLE events {change}")


def test_columns_that_come_and_go_while_a_loader_stays_connected(db: Database) -> None:
    declared(db)
    loader = db.connect()
    changes = ("ADD COLUMN a integer", "ADD COLUMN b text", "DROP COLUMN a", "ALTER COLUMN b TYPE integer USING 1")
    for number, change in enumerate(changes):
        loader.execute("INSERT INTO events (id, at) VALUES (%s, %s)", (number, at("11:00")))
        db.execute(f"ALTER TABLE events {change}")
        loader.execute("INSERT INTO events (id, at) VALUES (%s, %s)", (number + 10, at("11:00")))
        loader.execute("UPDATE events SET at = at - interval '1 hour' WHERE id = %s", (number,))
    assert len(ledger(db)) == 3 * len(changes)


def test_entries_are_trimmed_but_not_what_waits_nor_the_count(db: Database) -> None:
    declared(db, too_late="1 hour")
    db.execute("INSERT INTO events VALUES (1, %s), (2, %s), (3, %s)", at("11:00"), at("09:00"), at("09:00"))
    db.execute("SELECT pgtrickle.replay_late_rows('events', ARRAY(SELECT late_id FROM pgtrickle.late_rows() "
               "WHERE row_data ->> 'id' = '3'))")  # fmt: skip
    db.execute("SELECT pgtrickle.trim_history('30 days')")
    assert len(ledger(db)) == 3
    db.execute("UPDATE pgtrickle.pgt_event_times SET declared_at = declared_at - interval '60 days'")
    db.execute("UPDATE pgtrickle.pgt_late_rows SET arrived_at = arrived_at - interval '31 days'")
    db.execute("SELECT pgtrickle.trim_history('30 days')")
    assert ledger(db) == [(2, "kept_out"), (3, "replayed")], "it was replayed a moment ago"
    db.execute("UPDATE pgtrickle.pgt_late_rows SET settled_at = settled_at - interval '31 days'")
    db.execute("SELECT pgtrickle.trim_history('30 days')")
    assert ledger(db) == [(2, "kept_out")]
    assert db.execute("SELECT late_rows, late_waiting FROM pgtrickle.watermark_metrics()") == [(3, 1)]
    db.execute("DROP TABLE events")
    db.execute("SELECT pgtrickle.trim_history('30 days')")
    assert db.value("SELECT count(*) FROM pgtrickle.pgt_late_rows") == 0
    assert db.execute("SELECT * FROM pgtrickle.event_times()") == []
    assert (
        db.value("SELECT count(*) FROM pg_proc WHERE proname ~ '^(late|late_row|too_late)_[0-9]+$' AND %s", True) == 0
    )
