"""When stream tables are refreshed in effect, as pgt_status() says it in words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pytrickle.durations import length
from tests.conftest import Database
from tests.sql.checks import create


def effective(db: Database, name: str = "s") -> str:
    query = "SELECT effective_schedule FROM pgtrickle.pgt_status() WHERE stream_table = %s"
    answer = db.value(query, f"public.{name}")
    assert isinstance(answer, str)
    return answer


def alter(db: Database, name: str, **options: str) -> None:
    given = "".join(f", {option} => %s" for option in options)
    db.execute(f"SELECT pgtrickle.alter_stream_table(%s{given})", name, *options.values())


@pytest.mark.parametrize(
    ("schedule", "tier", "words"),
    [
        ("10m", "hot", "10 min"),
        ("10m", "warm", "20 min"),
        ("1s", "cold", "10 s"),
        ("00:30:01.5", "hot", "30 min 1.5 s"),
        ("45 minutes", "warm", "1 h 30 min"),
        ("1 month 1 day", "warm", "2 mo 2 d"),
        ("0 6 * * mon-fri", "hot", "0 6 * * mon-fri Asia/Tokyo"),
        ("@daily", "warm", "@daily Asia/Tokyo, every 2nd time"),
        ("@daily", "cold", "@daily Asia/Tokyo, every 10th time"),
        ("calculated", "hot", "when a source changes"),
        ("calculated", "cold", "when a source changes, at most once in 10 poll intervals"),
        ("@daily", "frozen", "never: frozen"),
        ("calculated", "frozen", "never: frozen"),
    ],
)
def test_schedule_and_tier_in_words(tables: Database, schedule: str, tier: str, words: str) -> None:
    create(tables, "SELECT a FROM t", schedule=schedule, tier=tier, schedule_timezone="Asia/Tokyo")
    for style in ("postgres", "postgres_verbose", "iso_8601", "sql_standard"):
        connection = tables.connect(options=f"-c IntervalStyle={style}")
        assert connection.execute("SELECT effective_schedule FROM pgtrickle.pgt_status()").fetchone() == (words,)
    tables.execute("SELECT pgtrickle.pause_stream_table()")
    assert effective(tables) == "never: paused"


@pytest.fixture
def chain(tables: Database) -> Database:
    """Two scheduled stream tables over t and u, and calculated ones over them: low over both, top over low."""
    create(tables, "SELECT a FROM t", "slow", schedule="1 hour")
    create(tables, "SELECT a FROM u", "fast", schedule="40 minutes")
    create(tables, "SELECT a FROM slow UNION ALL SELECT a FROM fast", "low")
    create(tables, "SELECT count(*) AS n FROM low", "top")
    return tables


def test_a_calculated_table_follows_the_most_frequent_of_what_it_reads(chain: Database) -> None:
    assert effective(chain, "low") == effective(chain, "top") == "with public.fast: 40 min"
    alter(chain, "fast", tier="warm")
    assert effective(chain, "top") == "with public.slow: 1 h"
    alter(chain, "fast", schedule="*/25 * * * *", schedule_timezone="UTC")
    assert effective(chain, "top") == "with public.fast: */25 * * * * UTC, every 2nd time"
    alter(chain, "fast", schedule="0 */12 * * *")
    assert effective(chain, "top") == "with public.slow: 1 h"
    chain.execute("SELECT pgtrickle.pause_stream_table('slow')")
    assert effective(chain, "top") == "with public.fast: 0 */12 * * * UTC, every 2nd time"
    alter(chain, "fast", tier="frozen")
    assert effective(chain, "top") == "never: all that it reads is paused or frozen"


def test_a_table_that_also_reads_a_base_table_follows_its_changes(chain: Database) -> None:
    create(chain, "SELECT top.n, t.a FROM top, t", "mixed")
    assert effective(chain, "mixed") == "when a source changes"
    alter(chain, "fast", schedule="calculated")
    assert effective(chain, "top") == "when a source changes"
    chain.execute("SELECT pgtrickle.pause_stream_table('low')")
    assert effective(chain, "top") == "never: all that it reads is paused or frozen"


def test_what_no_change_tells_of_is_refreshed_at_every_tick(tables: Database) -> None:
    create(tables, "SELECT a, now() AS at FROM t")
    assert effective(tables) == "at every tick"
    create(tables, "SELECT a FROM s", "over")
    assert effective(tables, "over") == "when a source changes"


def test_status_says_what_is_due(tables: Database) -> None:
    create(tables, "SELECT a FROM t", "s1")
    create(tables, "SELECT a FROM t", "s2")
    tables.execute("SELECT pgtrickle.pause_stream_table('s2')")
    assert tables.execute("SELECT stream_table, due FROM pgtrickle.pgt_status()") == [
        ("public.s1", True),
        ("public.s2", False),
    ]


@pytest.mark.parametrize(
    ("span", "written"),
    [
        (timedelta(0), "0 s"),
        (timedelta(milliseconds=120), "120 ms"),
        (timedelta(seconds=1.5), "1.5 s"),
        (timedelta(minutes=90), "1 h 30 min"),
        (timedelta(days=2, hours=3), "2 d 3 h"),
        (-timedelta(minutes=5), "-5 min"),
    ],
)
def test_sentences_of_the_server_write_durations_as_the_command_line_does(
    db: Database, span: timedelta, written: str
) -> None:
    assert length(span) == written
    assert db.value("SELECT pgtrickle_private.written_interval(%s)", span) == written


def test_sentences_write_durations_whole_so_that_two_can_be_compared(db: Database) -> None:
    span = timedelta(days=1, hours=2, minutes=3, seconds=4.5)
    assert db.value("SELECT pgtrickle_private.written_interval(%s)", span) == "1 d 2 h 3 min 4.5 s"
