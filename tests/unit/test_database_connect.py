"""Connections: one way to open them, and nothing secret in what goes wrong."""

import os
import traceback
from datetime import UTC, date, datetime, timedelta, timezone

import psycopg
import pytest
import sqlalchemy
from psycopg.conninfo import conninfo_to_dict

from pytrickle.database import connect, may_time_commits
from pytrickle.database.engine import engine
from pytrickle.database.messages import LOGIN_REFUSED
from pytrickle.database.refused import refused_connection
from pytrickle.errors import ConfigError, ConnectionLost, PytrickleError
from pytrickle.progress import Progress
from tests.conftest import Database
from tests.servers import NEWEST


def test_connection_is_autocommit_and_says_who_it_is(empty_db: Database) -> None:
    with connect(empty_db.dsn, role="test") as connection:
        assert connection.autocommit
        assert connection.execute("SHOW application_name").fetchone() == ("pytrickle/test",)


def test_a_server_that_does_not_time_commits_is_not_asked_for_their_times(empty_db: Database) -> None:
    with connect(empty_db.dsn) as ours, psycopg.connect(empty_db.dsn) as another:
        assert not may_time_commits(ours), "track_commit_timestamp is off by default"
        assert may_time_commits(another), "nobody asked that session"


def test_empty_dsn_means_the_libpq_environment(empty_db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    options = conninfo_to_dict(empty_db.dsn)
    for option, variable in {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}.items():
        monkeypatch.setenv(variable, str(options[option]))
    with connect() as connection:
        assert connection.info.dbname == options["dbname"]


def test_dates_are_iso_and_their_order_is_kept(empty_db: Database) -> None:
    empty_db.execute(f'ALTER DATABASE "{conninfo_to_dict(empty_db.dsn)["dbname"]}" SET DateStyle TO German, DMY')
    with connect(empty_db.dsn) as connection:
        assert connection.execute("SHOW DateStyle").fetchone() == ("ISO, DMY",)
        assert connection.execute("SELECT timestamptz '2024-02-01 00:00+00'").fetchone() == (
            datetime(2024, 2, 1, tzinfo=UTC),
        )


@pytest.mark.parametrize(
    ("kind", "greatest", "least"),
    [
        ("timestamptz", datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)),
        ("timestamp", datetime.max, datetime.min),
        ("date", date.max, date.min),
    ],
)
def test_infinity_goes_both_ways(empty_db: Database, kind: str, greatest: object, least: object) -> None:
    with connect(empty_db.dsn) as connection:
        loaded = connection.execute(f"SELECT '-infinity'::{kind}, 'infinity'::{kind}".encode()).fetchone()
        dumped = connection.execute(f"SELECT %s::{kind}::text, %s::{kind}::text".encode(), (least, greatest)).fetchone()
    assert loaded == (least, greatest)
    assert dumped == ("-infinity", "infinity")


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=-5)), None])
def test_finite_timestamps_are_untouched(empty_db: Database, zone: timezone | None) -> None:
    moment = datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=zone)
    with connect(empty_db.dsn) as connection:
        assert connection.execute("SELECT %s", (moment,)).fetchone() == (moment,)


def test_an_interval_that_python_has_not_is_the_longest_that_it_has(empty_db: Database) -> None:
    with connect(empty_db.dsn) as connection:
        for days, found in ((2147483647, timedelta.max), (-2147483648, timedelta.min)):
            assert connection.execute(f"SELECT interval '{days} days'".encode()).fetchone() == (found,)


@pytest.mark.parametrize("every_empty_db", (NEWEST,), indirect=True, ids="pg{}".format)
def test_an_infinite_interval_is_not_zero(every_empty_db: Database) -> None:
    with connect(every_empty_db.dsn) as connection:
        row = connection.execute("SELECT interval 'infinity', interval '-infinity', interval '0'").fetchone()
    assert row == (timedelta.max, timedelta.min, timedelta(0))


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "America/Los_Angeles"])
@pytest.mark.parametrize(
    "asserted",
    [
        "0044-03-15 00:00+00 BC",
        "0001-01-01 00:00+00",
        "9999-12-31 12:00+00",
        "9999-12-31 23:59:59.999999+00",
        "12000-01-01 00:00+00",
        "294276-12-31 00:00+00",
    ],
)
def test_a_moment_that_python_has_not_never_comes_back_later(empty_db: Database, asserted: str, zone: str) -> None:
    with connect(empty_db.dsn) as connection:
        connection.execute("SELECT set_config('TimeZone', %s, false)", (zone,))
        row = connection.execute("SELECT %s::text::timestamptz", (asserted,)).fetchone()
        back = "SELECT %s <= %s::text::timestamptz"
        assert connection.execute(back, (*(row or ()), asserted)).fetchone() == (True,)


def test_moments_read_in_the_hour_that_a_clock_repeats_keep_their_order(empty_db: Database) -> None:
    with connect(empty_db.dsn) as connection:
        connection.execute("SET TimeZone TO 'Europe/Berlin'")
        ((first, second),) = connection.execute(
            "SELECT timestamptz '2026-10-25 02:30+02', timestamptz '2026-10-25 02:10+01'"
        ).fetchall()
    assert (first < second, second - first) == (True, timedelta(minutes=40))
    assert (first.isoformat(), second.isoformat()) == ("2026-10-25T02:30:00+02:00", "2026-10-25T02:10:00+01:00")
    assert Progress(second).exceeds(Progress(first))
    assert Progress(first).joined(Progress(second)) == Progress(second)


def test_infinity_is_one_moment_and_not_one_in_each_zone(empty_db: Database) -> None:
    local = datetime.max.replace(tzinfo=timezone(timedelta(hours=9)))
    with connect(empty_db.dsn) as connection:
        assert connection.execute("SELECT isfinite(%s::timestamptz)", (local,)).fetchone() == (True,)


def test_engine_transacts_and_reads_infinity(empty_db: Database) -> None:
    pool = engine(empty_db.dsn)
    try:
        with pool.connect() as connection:
            connection.execute(sqlalchemy.text("CREATE TABLE public.t (a int)"))
            connection.rollback()
            row = connection.execute(sqlalchemy.text("SELECT to_regclass('t'), timestamptz 'infinity'")).one()
    finally:
        pool.dispose()
    assert row == (None, datetime.max.replace(tzinfo=UTC))


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://me:s3cr3t@127.0.0.1:1/db",
        "postgresql://me:s3cr3t/x@127.0.0.1/db",
        "postgresql://me:x@s3cr3t@127.0.0.1/db",
        "postgresql://me:s3cr3t@127.0.0.1:port/db",
        "postgresql//me:s3cr3t@127.0.0.1/db",
        "postgresql://me:s3cr3t%@127.0.0.1/db",
        "host=127.0.0.1 port=1 password='s3cr3t",
        "host=127.0.0.1 port=1 pasword=s3cr3t",
    ],
)
def test_failing_connection_never_shows_the_password(dsn: str) -> None:
    with pytest.raises((ConfigError, ConnectionLost)) as failure:
        connect(dsn)
    assert failure.value.hint
    shown = "".join(traceback.format_exception(failure.value)) + failure.value.hint
    assert "s3cr3t" not in shown


def test_unreachable_server_may_be_tried_again() -> None:
    with pytest.raises(ConnectionLost) as failure:
        connect("postgresql://me@127.0.0.1:1/db")
    assert failure.value.retryable


def test_unknown_database_is_a_matter_of_configuration(empty_db: Database) -> None:
    with pytest.raises(ConfigError, match="nowhere") as failure:
        connect(psycopg.conninfo.make_conninfo(empty_db.dsn, dbname="nowhere"))
    assert isinstance(failure.value, PytrickleError) and not failure.value.retryable


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ('FATAL:  role "nobody" does not exist', True),
        ("FATAL:  Passwort-Authentifizierung für Benutzer »nobody« fehlgeschlagen", True),
        ("FATAL:  Datenbank »nothing« existiert nicht", True),
        ("FATAL:  la base de données « nothing » n'existe pas", True),
        ('FATAL:  kein pg_hba.conf-Eintrag für Host "::1", Benutzer "nobody", Datenbank "nothing", SSL aus', True),
        ('FATAL:  role "nobody" is not permitted to log in', True),
        ("FATAL:  the database system is starting up", False),
        ("FATAL:  das Datenbanksystem startet", False),
        ("FATAL:  tut mir leid, schon zu viele Verbindungen", False),
    ],
)
def test_a_refused_login_is_known_in_the_language_of_the_server(said: str, refused: bool) -> None:
    assert bool(LOGIN_REFUSED.search(said)) == refused


@pytest.mark.parametrize(
    "settings",
    [
        "service=nope",
        "sslmode=bogus",
        "host=127.0.0.1 port=99999",
        "hostaddr=300.1.1.1",
        "connect_timeout=abc",
        "host=a,b port=1,2,3",
        "host=127.0.0.1 sslmode=require",
        "host=127.0.0.1 keepalives=x",
        "host=127.0.0.1 user=postgres options='-c nope=1'",
    ],
)
def test_settings_that_cannot_be_used_are_not_tried_again(steady_db: Database, settings: str) -> None:
    running = psycopg.conninfo.conninfo_to_dict(steady_db.dsn)
    dsn = settings if "port" in settings else psycopg.conninfo.make_conninfo(settings, port=running["port"])
    with pytest.raises(ConfigError, match="settings cannot be used") as failure:
        connect(dsn)
    assert not failure.value.retryable
    assert "service file" in str(failure.value.hint)


@pytest.mark.parametrize(
    ("said", "helps"),
    [
        ("sorry, too many clients already", "max_connections"),
        ("query_wait_timeout", "default_pool_size"),
        ("désolé, trop de clients sont déjà connectés", "max_connections"),
        ('too many connections for role "me"', "CONNECTION LIMIT"),
        ("the database system is starting up", "pytrickle run"),
        ("das Datenbanksystem ist im Wiederherstellungsmodus", "pytrickle run"),
        ("Connection refused", "PG* variables"),
    ],
)
def test_a_server_that_takes_no_connection_now_is_tried_again_with_what_helps(said: str, helps: str) -> None:
    error = refused_connection(f'connection failed: connection to server at "db", port 5432 failed: FATAL:  {said}')
    assert isinstance(error, ConnectionLost) and error.retryable
    assert helps in str(error.hint)


def test_a_role_that_has_all_its_connections_is_told_what_helps(db: Database) -> None:
    limited = db.create_role("limited")
    db.execute(f"ALTER ROLE {limited} CONNECTION LIMIT 0")
    with pytest.raises(ConnectionLost) as failure:
        connect(psycopg.conninfo.make_conninfo(db.dsn, user=limited))
    assert "CONNECTION LIMIT" in str(failure.value.hint)


@pytest.mark.parametrize(
    ("variable", "value"), [("PYTRICKLE_DSN", "host=\udcff"), ("PGHOST", "\udcff"), ("PGHOST", "a..b")]
)
def test_settings_that_are_no_text_are_told_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match="no text") as failure:
        connect(os.environ.get("PYTRICKLE_DSN", ""))
    assert "PG*" in str(failure.value.hint)
