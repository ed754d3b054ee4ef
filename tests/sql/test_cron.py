"""Which schedules may be set; cron expressions are those that the refresher's library reads."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import psycopg
import pytest
from cronsim import CronSim, CronSimError
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.conftest import Database
from tests.sql.checks import create, refused

CHECK = "SELECT pgtrickle_private.check_schedule(%s, %s)"
READ = (
    "SELECT num_nulls(seconds, minutes, hours, days, months, weekdays) = 0 AND pgtrickle_private.cron_dates(e) > 0, c.*"
    " FROM unnest(%s::text[]) WITH ORDINALITY AS u (e, n), pgtrickle_private.cron_fields(e) AS c ORDER BY n"
)
START = datetime(2026, 1, 1)
# Each example is a list of expressions, and what differs is named: there is nothing to shrink.
SOME = settings(
    max_examples=8,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
NAMES = {"month": ["jan", "Feb", "APR", "dec"], "weekday": ["sun", "Mon", "FRI", "sat"]}


def values(bound: int, names: list[str]) -> st.SearchStrategy[str]:
    numbers = st.integers(0, bound + 2).map(str) | st.integers(0, bound).map("{:02}".format)
    return numbers | st.sampled_from(names) if names else numbers


def items(bound: int, names: list[str]) -> st.SearchStrategy[str]:
    value = values(bound, names)
    spans = st.just("*") | value | st.tuples(value, value).map("-".join)
    odd = st.sampled_from(["", "-", "1-", "/2", "*-3", "1-2-3", "*/2/3", "*/x", "mon", "jan", "**", "1.5", "-1"])
    return st.one_of(*[spans] * 4, st.tuples(spans, st.sampled_from(["0", "1", "2", "7", "100"])).map("/".join), odd)


def fields(bound: int, names: list[str] | None = None) -> st.SearchStrategy[str]:
    return st.lists(items(bound, names or []), min_size=1, max_size=2).map(",".join)


EXPRESSIONS = (
    st.tuples(fields(59), fields(59), fields(23), fields(31), fields(12, NAMES["month"]), fields(7, NAMES["weekday"]))
    .map(lambda six: six[1:] if len(six[0]) == 1 else six)
    .filter(all)
)
RARE = st.tuples(
    *map(st.just, "00"),
    *map(st.sampled_from, (["29", "30", "31", "31,30", "*/31", "30-31"], ["2", "2,4", "feb-apr", "11"])),
)
DAYS = st.tuples(RARE, st.sampled_from(["*", "*/2", "1", "fri", "8"])).map(lambda parts: (*parts[0], parts[1]))


def as_the_library_reads(expression: str) -> tuple[object, ...] | None:
    try:
        read = CronSim(expression, START)
    except CronSimError:
        return None
    return (
        *(sorted(found) for found in (read.seconds, read.minutes, read.hours, read.days, read.months, read.weekdays)),
        read.day_and,
    )


@SOME
@given(expressions=st.lists(st.one_of(EXPRESSIONS, DAYS).map(" ".join), min_size=40, max_size=60))
def test_sql_and_the_library_read_the_same_in_an_expression(db: Database, expressions: list[str]) -> None:
    for expression, (fires, *fields) in zip(expressions, db.execute(READ, expressions), strict=True):
        assert (tuple(fields) if fires else None) == as_the_library_reads(expression), expression


@pytest.mark.parametrize(
    "schedule",
    [
        *(
            "calculated",
            "5s",
            "10m",
            "30",
            "1h30m",
            "1 day, 2 hours",
            "1.5 days",
            "-1 day +25:00:00",
            "3 01:02",
            "P1DT2H",
            "1h 30m",
            "@ 5 minutes",
            "1 day 2 hours 30",
            "PT5M",
            "1 month",
        ),
        *("0 6 * * mon-fri", "  */5   0-6,22\t1 JAN,jul 0  ", "0 0 29 2 *", "0 0 31 2 mon"),
        *("* * * * * *", "*/15 0 6 * * mon-fri"),
        *("@hourly", "@daily", "@weekly", "@MONTHLY", " @yearly "),
    ],
)
def test_schedules_that_may_be_set(steady_db: Database, schedule: str) -> None:
    steady_db.execute(CHECK, schedule, "Europe/Berlin")


@pytest.mark.parametrize(
    ("schedule", "hint"),
    [
        *[
            (s, "five fields")
            for s in ("", "sometimes", "0", "-1 minute", "infinity", "@never", "* * * *", "* * * * * * *")
        ],
        *[
            (s, "five fields")
            for s in ("*/10", "5 *", "5 ,", ",5", "5 :", "5#", "(5)", "5 min;", "5m *", "@ 5 . s", "5 @")
        ],
        *[(s, "five fields") for s in ("0 0 L * *", "0 0 1W * *", "0 0 * * 5#2", "? * * * *", "0 jan * * *")],
        *[
            (s, "hour 0-23")
            for s in ("60 * * * *", "0 24 * * *", "0 0 0 * *", "0 0 * 13 *", "0 0 * * 8", "*/0 * * * *")
        ],
        *[(s, "hour 0-23") for s in ("5-1 * * * *", "1, * * * *", "0 0 * mon *", "0 0 * * jan", "1/2/3 * * * *")],
        *[(s, "second 0-59") for s in ("60 * * * * *", "0 60 * * * *", "0 0 0 0 * *", "*/0 * * * * *")],
        *[(s, "day that exists") for s in ("0 0 31 2 *", "0 0 30,31 feb *", "0 0 31 4-4,6,9,11 *", "0 0 30 2 */2")],
    ],
)
def test_schedules_that_may_not(steady_db: Database, schedule: str, hint: str) -> None:
    with refused("22023", hint, "invalid_argument"):
        steady_db.execute(CHECK, schedule, "Europe/Berlin")


def test_neither_schedule_nor_time_zone_may_be_null(tables: Database) -> None:
    for schedule, zone in ((None, "UTC"), ("5m", None), ("calculated", None)):
        with refused("22004", "Use"):
            tables.execute(CHECK, schedule, zone)


def test_the_time_zone_is_one_that_postgresql_knows_and_a_named_one_for_cron(tables: Database) -> None:
    create(tables, "SELECT a FROM t", schedule_timezone="<+02>-02")
    for call in (
        "'s', schedule_timezone => 'Mars/Olympus'",
        "'s', schedule => '@daily'",
        "'s', schedule_timezone => ''",
    ):
        with refused("22023", "Europe/Berlin", "invalid_argument"):
            tables.execute(f"SELECT pgtrickle.alter_stream_table({call})")
    tables.execute(
        "SELECT pgtrickle.alter_stream_table('s', schedule => '@daily', schedule_timezone => 'Europe/Berlin')"
    )
    with refused("22023", "Etc/GMT-2"):
        tables.execute("SELECT pgtrickle.alter_stream_table('s', schedule_timezone => 'PST')")


@pytest.mark.parametrize("zone", ["localtime", "posixrules", "Factory", "posix/Europe/Berlin", "right/Europe/Berlin"])
def test_names_that_only_some_machines_know_are_refused_for_cron(steady_db: Database, zone: str) -> None:
    with refused("22023", "such as 'Europe/Berlin'"):
        steady_db.execute(CHECK, "@daily", zone)


def test_the_default_time_zone_is_the_one_of_the_session(tables: Database) -> None:
    connection = tables.connect()
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    connection.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM t', schedule => '@daily')")
    assert tables.value("SELECT schedule_timezone FROM pgtrickle.pgt_stream_tables") == "Asia/Tokyo"


def test_the_refresher_knows_every_time_zone_that_a_cron_schedule_may_have(db: Database) -> None:
    unknown = []
    for (name,) in db.execute("SELECT name FROM pg_timezone_names"):
        try:
            ZoneInfo(name)
        except (OSError, KeyError, ValueError):
            unknown.append(name)
    for name in unknown:
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            db.execute(CHECK, "@daily", name)
