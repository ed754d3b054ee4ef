"""What the sink writes is what Spark had, whatever the type; what it cannot write it refuses."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from pytrickle.errors import InvalidArgument
from pytrickle.streaming import PostgresSinkSource, postgres_sink
from pytrickle.watermarks import event_time, punctuated
from tests.conftest import Database

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = """
CREATE TABLE things (
    n bigint, "A ""b" text, real real, double double precision, amount numeric, yes boolean, day date,
    at timestamptz, local timestamp, bytes bytea, doc jsonb, kept text DEFAULT 'by default', gone int)
"""
COLUMNS = (
    'n long, `A "b` string, real float, double double, amount decimal(38,18), yes boolean, day date, at timestamp,'
    " local timestamp_ntz, bytes binary, doc string"
)
FIRST = datetime(1900, 1, 1, 0, 0, 0, 1, UTC)
LOCAL = datetime(2026, 3, 29, 2, 30, 0, 123456)
ROWS: list[tuple[Any, ...]] = [
    (1, "", 0.1, 0.1, Decimal("1e-18"), True, date(1, 1, 1), FIRST, LOCAL, b"", "{}"),
    (2, 'a\n\\.\n"b",', -0.0, 5e-324, Decimal("-99999999999999999999.5"), False, date(9999, 12, 31), FIRST, LOCAL,
     b'\x00\\x"\n', '["é"]'),
    (3, "\\N", float("inf"), float("nan"), Decimal(0), None, None, None, None, None, None),
    (4, None, None, None, None, None, None, None, None, None, None),
]  # fmt: skip


@pytest.fixture
def things(db: Database) -> Database:
    db.execute(TABLE)
    db.execute("ALTER TABLE things DROP gone")
    return db


def write(db: Database, frame: DataFrame, batch: int = 0, **options: Any) -> None:
    """Hand a batch to the sink as foreachBatch does."""
    given = {"event_time": "at", "generator": event_time(timedelta(0)), **options}
    postgres_sink(db.dsn, "things", sink="test", **given)(frame, batch)


def test_every_value_arrives_as_it_was(things: Database, spark: SparkSession) -> None:
    frame = spark.createDataFrame(ROWS, COLUMNS)
    write(things, frame.repartition(3))
    found = things.execute(
        'SELECT n, "A ""b", real, double, amount, yes, day, at, local, bytes, doc::text FROM things ORDER BY n'
    )
    assert repr([(row[0], row[1], *map(plain, row[2:])) for row in found]) == repr(
        [(row[0], row[1], *map(plain, row[2:])) for row in ROWS]
    )
    assert things.execute("SELECT DISTINCT kept FROM things") == [("by default",)]
    assert things.value("SELECT watermark FROM pgtrickle.watermarks()") == FIRST


def test_moments_arrive_whatever_the_offset_of_the_sessions_zone(things: Database, spark: SparkSession) -> None:
    """That of Monrovia was 44 minutes and 30 seconds until 1972."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Africa/Monrovia")
    moments = [FIRST, datetime(1971, 5, 1, tzinfo=UTC), datetime(2026, 3, 29, 0, 30, tzinfo=UTC)]
    write(things, session.createDataFrame([(moment,) for moment in moments], "at timestamp"))
    assert things.execute("SELECT at FROM things ORDER BY at") == [(moment,) for moment in moments]


def test_years_that_python_does_not_know_arrive_too(things: Database, spark: SparkSession) -> None:
    """Spark's last moment, which is used for "for ever", is of the year 294247."""
    moments = {
        "-0044-03-15 10:00:00": "0045-03-15 BC",
        "0000-12-31 23:59:59.999999": "0001-12-31 BC",
        "2026-11-30 12:00:00": "2026-11-30",
        "+12026-02-28 00:00:00": "12026-02-28",
        "+200000-02-29 10:00:00.5": "200000-02-29",
    }
    rows = ", ".join(f"({n}, timestamp'{at} UTC', timestamp_ntz'{at}')" for n, at in enumerate(moments))
    write(things, spark.sql(f"SELECT n, at, local, cast(local AS date) AS day FROM VALUES {rows} AS t(n, at, local)"))
    shown = "SELECT day::text, at AT TIME ZONE 'UTC' = local, local::date = day FROM things ORDER BY n"
    assert things.execute(shown) == [(day, True, True) for day in moments.values()]


def plain(value: Any) -> Any:
    """Drop what is not of the value: trailing zeros of numerics, the zone in which a moment is shown."""
    match value:
        case Decimal():
            return f"{value.normalize():f}"
        case datetime(tzinfo=zone) if zone:
            return value.astimezone(UTC)
        case float():
            return f"{value:.6g}"
    return value


@pytest.mark.parametrize(
    "kind", ["array(1)", "map('a', 1)", "named_struct('a', 1)", "interval '1' day", "interval '1' month"]
)
def test_types_that_are_not_text_are_refused_with_a_way_out(things: Database, spark: SparkSession, kind: str) -> None:
    with pytest.raises(InvalidArgument, match="the column n of type") as raised:
        write(things, spark.sql(f"SELECT {kind} AS n"))
    assert "to_json" in str(raised.value.hint)


def test_a_generator_is_needed_where_the_query_declares_no_watermark(things: Database, spark: SparkSession) -> None:
    with pytest.raises(InvalidArgument, match="declares no watermark on the column at"):
        write(things, spark.createDataFrame(ROWS[:1], COLUMNS), generator=None)
    assert things.value("SELECT count(*) FROM things") == 0


def test_infinite_and_missing_event_times_move_nothing(things: Database, spark: SparkSession) -> None:
    generator = event_time(timedelta(0))
    frame = spark.sql("SELECT * FROM VALUES (1L, 'infinity'), (2L, '-infinity'), (3L, NULL) AS t(n, at)")
    write(things, frame, generator=generator)
    assert things.execute("SELECT watermark FROM pgtrickle.watermarks()") == []
    assert (generator.metrics().rows, generator.metrics().unplaced) == (3, 3)
    write(things, spark.sql("SELECT '2026-03-02 12:00:00' AS at"), batch=1, generator=generator)
    assert things.value("SELECT watermark FROM pgtrickle.watermarks()") == datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_an_empty_batch_counts_and_is_a_sign_of_life(things: Database, spark: SparkSession) -> None:
    things.execute("SELECT pgtrickle.advance_watermark('things', '2026-03-02 12:00Z')")
    seen = things.value("SELECT last_seen_at FROM pgtrickle.watermarks()")
    empty = spark.createDataFrame([], COLUMNS)
    write(things, empty)
    assert things.value("SELECT last_seen_at FROM pgtrickle.watermarks()") > seen
    assert things.value("SELECT batch_id FROM pgtrickle.pgt_sink_batches") == 0


def test_another_loader_that_is_further_is_followed_not_pulled_back(things: Database, spark: SparkSession) -> None:
    things.execute("SELECT pgtrickle.advance_watermark('things', 'infinity')")
    write(things, spark.createDataFrame(ROWS[:1], COLUMNS))
    assert things.value("SELECT watermark = 'infinity' FROM pgtrickle.watermarks()")
    assert things.value("SELECT count(*) FROM things") == 1


def test_marks_need_no_event_time(things: Database, spark: SparkSession) -> None:
    generator = punctuated()
    generator.mark(FIRST)
    write(things, spark.createDataFrame(ROWS, COLUMNS), generator=generator, event_time=None)
    assert things.value("SELECT watermark FROM pgtrickle.watermarks()") == FIRST


def test_options_of_the_data_source_are_checked(spark: SparkSession) -> None:
    schema = spark.createDataFrame(ROWS, COLUMNS).schema
    given = {"dsn": "unused", "table": "things", "sink": "test", "event_time": "at", "watermark_lateness": "5"}
    wrong = {
        "url is missing": {**given, "dsn": ""},
        "are the same": {**given, "url": "also"},
        "one of JDBC": {**given, "dsn": "jdbc:postgresql://db/shop"},
        "sink is missing": {**given, "sink": ""},
        "watermark_lateness cannot be": {**given, "watermark_lateness": "soon"},
        "declares no watermark": {name: value for name, value in given.items() if name != "watermark_lateness"},
    }
    for message, options in wrong.items():
        with pytest.raises(InvalidArgument, match=message):
            PostgresSinkSource(options).streamWriter(schema, overwrite=False)
    with pytest.raises(InvalidArgument, match="appends"):
        PostgresSinkSource(given).streamWriter(schema, overwrite=True)
