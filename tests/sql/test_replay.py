"""Rows beyond the limit wait in the ledger instead of in the source, and are replayed exactly once."""

import threading

import psycopg
import pytest

from tests.conftest import Database
from tests.sql.checks import create, logged, refused
from tests.sql.late import EVENTS, advance, at, declared, ids, ledger, set_event_time

INSERT = "INSERT INTO events (id, at) VALUES (%s, %s)"
REPLAY = "SELECT pgtrickle.replay_late_rows('events')"
KEYED = "CREATE TABLE events (id integer PRIMARY KEY, at timestamptz, note text DEFAULT 'none')"


def test_only_rows_later_than_the_limit_are_kept_out(db: Database) -> None:
    declared(db, too_late="1 hour")
    for number, clock in enumerate(("12:00", "11:00", "10:59:59.999999", "09:00"), start=1):
        db.execute(INSERT, number, at(clock))
    db.execute(INSERT, 5, None)
    assert ids(db) == [1, 2, 5]
    assert ledger(db) == [(2, "loaded"), (3, "kept_out"), (4, "kept_out")]
    set_event_time(db)
    db.execute(INSERT, 6, at("09:00"))
    assert ids(db) == [1, 2, 5, 6]
    assert db.value("SELECT count(*) FROM pg_trigger WHERE tgrelid = 'events'::regclass") == 2


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_a_day_of_the_limit_has_24_hours_in_every_session(db: Database, zone: str) -> None:
    """In Berlin the 25th of October 2026 has 25 hours, and the 29th of March 23."""
    declared(db, watermark=None, too_late="1 day")
    loader = db.connect()
    loader.execute(f"SET TimeZone = '{zone}'")
    for number, day in enumerate(("2026-03-29", "2026-10-25")):
        db.execute("SELECT pgtrickle.advance_watermark('events', %s)", f"{day} 12:00+00")
        for minutes in (-30, 30):
            row = f"({10 * number + minutes}, timestamptz '{day} 12:00+00' - interval '24 hours {minutes} minutes')"
            loader.execute(f"INSERT INTO events VALUES {row}".encode())
    assert ids(db) == [-30, -20]


def test_a_bulk_load_splits_into_table_and_ledger(db: Database) -> None:
    declared(db, KEYED, too_late="1 hour")
    with db.connect() as loader, loader.cursor() as cursor, cursor.copy("COPY events (id, at) FROM STDIN") as copy:
        for number, clock in enumerate(("10:00", "12:00", "11:30", "09:00"), start=1):
            copy.write_row((number, at(clock)))
    db.execute(
        "INSERT INTO events SELECT i, %s FROM generate_series(2, 5) AS i ON CONFLICT (id) DO UPDATE SET note = 'again'",
        at("10:00"),
    )
    assert ids(db) == [2, 3]
    kept_out = [number for number, status in ledger(db) if status == "kept_out"]
    assert (kept_out, len(ledger(db))) == ([1, 2, 3, 4, 4, 5], 7)


def test_a_replay_puts_back_exactly_what_came_once(db: Database) -> None:
    columns = (
        "id integer GENERATED ALWAYS AS IDENTITY, at timestamptz, big numeric, real float8, doc json, docb jsonb, "
        "list text[], money money, bytes bytea, spell interval, mood mood, pair pair, short short, blank char(5), "
        "twice numeric GENERATED ALWAYS AS (big * 2) STORED"
    )
    db.execute("CREATE TYPE mood AS ENUM ('so', 'so-so'); CREATE TYPE pair AS (a integer, b text)")
    db.execute("CREATE DOMAIN short AS text NOT NULL CHECK (length(VALUE) < 5)")
    declared(db, f"CREATE TABLE events ({columns})", too_late="1 hour")
    loader = db.connect(autocommit=False)
    loader.execute("SET TimeZone = 'Asia/Tokyo'; SET DateStyle = 'German'; SET IntervalStyle = 'sql_standard'")
    loader.execute("SET extra_float_digits = -10; SET bytea_output = 'escape'")
    listed = "at, big, real, doc, docb, list, money, bytes, spell, mood, pair, short, blank"
    loader.execute(
        f"CREATE TEMPORARY TABLE wanted AS SELECT {listed} FROM (VALUES "
        "(timestamptz '1883-01-01 10:00+00', 1.500, 1e-17::float8 / 3, '{\"a\": 1, \"a\": 2}'::json, "
        "'[1, \"x\"]'::jsonb, "
        "'[2:3]={\"q,u\\\"o\",NULL}'::text[], 1234.5::money, '\\x00ff'::bytea, '-1 mon 2 days -03:04:05.6'::interval, "
        "'so-so'::mood, ROW(1, 'a,(\"b')::pair, 'it''s'::short, 'ab'::char(5)), "
        "('2026-03-01 09:00+00', 'NaN', '-0', 'null', NULL, '{}', NULL, '', '0', NULL, ROW(NULL, NULL)::pair, '', NULL)"
        f") AS v({listed})"
    )
    loader.execute(f"INSERT INTO events ({listed}) SELECT * FROM wanted")
    assert loader.execute("SELECT count(*) FROM events").fetchone() == (0,)
    loader.execute("SET array_nulls = off")
    assert loader.execute(REPLAY).fetchone() == (2,)
    same = "(ROW(e.*)::text) = (ROW(w.*)::text)"
    matching = (
        f"SELECT count(*) FROM (SELECT {listed} FROM events) AS e JOIN (SELECT {listed} FROM wanted) AS w ON {same}"
    )
    loader.execute("RESET ALL")
    assert loader.execute(matching).fetchone() == (2,)
    assert loader.execute("SELECT id, twice::text FROM events ORDER BY id").fetchall() == [(1, "3.000"), (2, "NaN")]
    loader.commit()
    assert db.value(REPLAY) == 0
    assert db.value("SELECT count(*) FROM events") == 2


def test_a_replay_is_not_late_again_and_moves_no_watermark(db: Database) -> None:
    declared(db, KEYED, too_late="1 hour")
    create(db, "SELECT id, at FROM events", "copied")
    db.execute(INSERT, 1, at("10:00"))
    db.execute(INSERT, 2, at("09:00"))
    missed = db.execute("SELECT late_id, watermark FROM pgtrickle.late_rows() ORDER BY 1")
    advance(db, "13:00")
    assert db.value("SELECT pgtrickle.replay_late_rows('events', ARRAY[%s, 99])", missed[1][0]) == 1
    assert ledger(db) == [(1, "kept_out"), (2, "replayed")]
    assert db.execute("SELECT late_id, watermark FROM pgtrickle.late_rows() ORDER BY 1") == missed
    assert db.value("SELECT watermark = %s FROM pgtrickle.watermarks()", at("13:00"))
    assert logged(db, "events", "id") == [(1, 2)], "stream tables see it as any insert"
    db.execute(INSERT, 3, at("10:00"))
    assert ledger(db) == [(1, "kept_out"), (2, "replayed"), (3, "kept_out")], "the next load is judged as ever"


def test_concurrent_replays_share_the_rows_out(db: Database) -> None:
    declared(db, EVENTS, too_late="1 hour")
    db.execute("INSERT INTO events SELECT i, %s FROM generate_series(1, 20) AS i", at("10:00"))
    first, second = db.connect(autocommit=False), db.connect()
    assert first.execute("SELECT pgtrickle.replay_late_rows('events', ARRAY[1, 2, 3])").fetchone() == (3,)
    found: list[object] = []
    waiting = threading.Thread(target=lambda: found.extend(second.execute(REPLAY).fetchall()))
    waiting.start()
    while not db.value("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %s", second.info.backend_pid):
        pass
    first.commit()
    waiting.join(timeout=30)
    assert found == [(17,)]
    assert ids(db) == list(range(1, 21))


def test_a_replay_that_is_rolled_back_did_not_happen(db: Database) -> None:
    declared(db, KEYED, too_late="1 hour")
    db.execute(INSERT, 1, at("10:00"))
    loader = db.connect(autocommit=False)
    loader.execute(REPLAY)
    loader.rollback()
    assert (ids(db), ledger(db)) == ([], [(1, "kept_out")])
    assert db.value(REPLAY) == 1
    assert (ids(db), ledger(db)) == ([1], [(1, "replayed")])


def test_a_conflict_fails_the_replay_or_is_passed_over(db: Database) -> None:
    declared(db, KEYED, too_late="1 hour")
    db.execute("INSERT INTO events (id, at) VALUES (1, %s), (2, %s)", at("10:00"), at("10:00"))
    db.execute(INSERT, 1, at("12:30"))
    with pytest.raises(psycopg.errors.UniqueViolation):
        db.execute(REPLAY)
    assert (ids(db), ledger(db)) == ([1], [(1, "kept_out"), (2, "kept_out")])
    assert db.value("SELECT pgtrickle.replay_late_rows('events', skip_conflicts => true)") == 1
    assert db.execute("SELECT id, at = %s FROM events ORDER BY 1", at("12:30")) == [(1, True), (2, False)]
    assert ledger(db) == [(1, "discarded"), (2, "replayed")], "what was there already did not come in"


def test_discarded_rows_are_not_replayed(db: Database) -> None:
    declared(db, too_late="1 hour")
    db.execute("INSERT INTO events SELECT i, %s FROM generate_series(1, 3) AS i", at("10:00"))
    assert db.value("SELECT pgtrickle.discard_late_rows('events', ARRAY[2, 3])") == 2
    assert db.value("SELECT pgtrickle.discard_late_rows('events', ARRAY[3])") == 0
    with refused("22004", "late_id"):
        db.execute("SELECT pgtrickle.discard_late_rows('events', NULL)")
    assert db.value(REPLAY) == 1
    assert ledger(db) == [(1, "replayed"), (2, "discarded"), (3, "discarded")]


def test_columns_added_since_get_their_default_and_lost_ones_stop_the_replay(db: Database) -> None:
    declared(db, KEYED, too_late="1 hour")
    db.execute("INSERT INTO events VALUES (1, %s, NULL)", at("10:00"))
    db.execute("ALTER TABLE events ADD COLUMN level integer DEFAULT 7")
    db.execute("INSERT INTO events VALUES (2, %s, 'unjudged', 8)", at("10:00"))
    assert ledger(db) == [(1, "kept_out"), (2, "loaded")], "what the ledger could not keep whole is loaded"
    db.execute("SELECT pgtrickle_private.write_event_time('events')")
    db.execute("INSERT INTO events VALUES (3, %s, 'a note', 9)", at("10:00"))
    db.execute("ALTER TABLE events RENAME COLUMN note TO remark")
    with refused("42703", "Nothing was replayed", "invalid_argument"):
        db.execute(REPLAY)
    db.execute("ALTER TABLE events RENAME COLUMN remark TO note")
    assert db.value(REPLAY) == 2
    assert db.execute("SELECT * FROM (SELECT id, note, level FROM events) AS e ORDER BY 1") == [
        (1, None, 7),
        (2, "unjudged", 8),
        (3, "a note", 9),
    ]


def test_the_limit_judges_what_other_triggers_leave(db: Database) -> None:
    declared(db, KEYED, too_late="1 hour")
    db.execute(
        "CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN NEW.at := COALESCE(NEW.at, ''2026-03-01 09:00+00''); RETURN NEW; END'"
    )
    db.execute("CREATE TRIGGER z_fill BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION fill()")
    db.execute("INSERT INTO events (id) VALUES (1)")
    assert (ids(db), ledger(db)) == ([], [(1, "kept_out")])


def test_users_triggers_run_under_the_callers_search_path_at_a_replay(db: Database) -> None:
    declared(db, KEYED, too_late="1 hour")
    db.execute("CREATE TABLE audit (id integer)")
    db.execute(
        "CREATE FUNCTION note_it() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO audit VALUES (NEW.id); RETURN NULL; END'"
    )
    db.execute("CREATE TRIGGER audit AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION note_it()")
    db.execute(INSERT, 1, at("10:00"))
    loader = db.connect()
    loader.execute(REPLAY)
    assert ids(db, "audit") == [1]
    assert loader.execute("SHOW search_path").fetchone() == ('"$user", public',)
