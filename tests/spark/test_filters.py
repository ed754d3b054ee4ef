"""Filters that the database applies: the same rows as Spark finds among all of them, for every value at the edge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from psycopg import sql
from pyspark.errors import PySparkException
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from pytrickle.database import filled
from pytrickle.streaming.source.columns import relation
from pytrickle.streaming.source.conditions import where
from pytrickle.streaming.source.filters import condition_of
from tests.conftest import Database
from tests.repeats import first

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SWITCH = "spark.sql.python.filterPushdown.enabled"
EDGES = """
CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE DOMAIN code AS text;
CREATE TABLE edges (id int PRIMARY KEY, b bool, s int2, l int8, f float8, n numeric(10,2), free numeric, t text,
    v varchar(9), c char(3), blind text COLLATE any_case, code code, day date, ts timestamp, tz timestamptz, j jsonb);
INSERT INTO edges VALUES
    (1, true, -32768, 9223372036854775807, 'NaN', -99999999.99, 'NaN', 'x', 'x', 'x', 'x', 'x', '0001-01-01',
        '0001-01-01', '0001-01-01 00:00:00+00', '1'),
    (2, false, 32767, -9223372036854775808, '-0.0', 1.10, 1.10, 'X', 'x ', 'x', 'X', 'X', '9999-12-31',
        '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999+00', '2'),
    (3, NULL, 0, 0, 0, 0, 0, '', '', '', '', '', '1970-01-01', '1970-01-01', 'epoch', '[]'),
    (4, true, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (5, false, 1, 1, 0.1, 100, 100.00, 'é', U&'e\\0301', 'é', 'é', 'é', '4713-01-01 BC', '1969-12-31 23:59:59.999999',
        '2026-03-29 01:30:00+00', 'null'),
    (6, true, -1, -1, 'Infinity', 0.01, 1e30, E'a''b\\\\n%', 'é', 'xyz', 'É', 'b', '10000-01-01', '10000-01-01',
        '10000-01-01 00:00:00+00', '"x"')
"""
# Taken by the database, as they are answered alike.
EXACT = (
    "b",
    "NOT b",
    "b <=> NULL",
    "s = -32768",
    "s IN (1, 32767)",
    "NOT s IN (1, 2)",
    "l > 9223372036854775806",
    "l <= -9223372036854775808",
    "NOT (l <=> 1)",
    "l IS NULL",
    "l IS NOT NULL AND s < 1",
    "n = 1.1",
    "n >= 100",
    "n < -99999999.98",
    "t = 'x'",
    "t IN ('é', '')",
    "t <> 'x'",
    "t = 'a\\'b\\\\\\\\n%'",
    "v = 'x '",
    "v = 'é'",
    "code = 'X'",
    "code IS NULL",
    "day = date'0001-01-01'",
    "day > date'9999-12-30'",
    "day < date'1970-01-01'",
    "ts = timestamp_ntz'9999-12-31 23:59:59.999999'",
    "ts < timestamp_ntz'1970-01-01 00:00:00'",
    "tz >= timestamp'2026-03-29 03:30:00 Europe/Berlin'",
    "tz = timestamp'0001-01-01 00:00:00Z'",
    "id BETWEEN 2 AND 5 AND t = 'X'",
)
# Left to Spark: PostgreSQL orders texts by language, compares some without blanks or case, and other types in its way.
INEXACT = (
    *("t > 'X'", "t LIKE 'x%'", "c = 'x  '", "c = 'x'", "blind = 'X'", "f = 0", "f = double('NaN')", "free = '1.10'"),
    *("j = '1'", "t = 'a\\u0000b'", "s IN (1, NULL)", "id = 1 OR t = 'X'", "f IS NULL AND free IS NULL"),
)


UTC_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What becomes of Spark's filters: the rows that PostgreSQL finds, or None where Spark has to look itself.
FOUND: tuple[tuple[Filter, set[int] | None], ...] = (
    (EqualTo(("t",), "x"), {1}),
    (Not(EqualTo(("t",), "x")), {2, 3, 5, 6}),
    (In(("v",), ("x ", "é")), {2, 6}),
    (EqualTo(("code",), "a'b"), set()),
    (EqualNullSafe(("l",), 1), {5}),
    (Not(EqualNullSafe(("l",), 1)), {1, 2, 3, 4, 6}),
    (LessThanOrEqual(("s",), -1), {1, 6}),
    (GreaterThan(("n",), Decimal("1.1")), {5}),
    (EqualTo(("b",), False), {2, 5}),
    (LessThan(("day",), date(1970, 1, 1)), {1, 5}),
    (GreaterThanOrEqual(("tz",), UTC_EPOCH), {2, 3, 5, 6}),
    (EqualTo(("ts",), datetime(1970, 1, 1)), {3}),
    (IsNull(("n",)), {4}),
    (IsNotNull(("n",)), {1, 2, 3, 5, 6}),
    (GreaterThan(("t",), "x"), None),
    (StringStartsWith(("t",), "x"), None),
    (EqualTo(("t",), "a\x00b"), None),
    (EqualTo(("c",), "x"), None),
    (EqualTo(("blind",), "x"), None),
    (EqualTo(("f",), 0.1), None),
    (EqualTo(("free",), "1.10"), None),
    (IsNull(("j",)), None),
    (EqualNullSafe(("s",), None), None),
    (In(("s",), (1, None)), None),
    (In(("s",), ()), None),
    (EqualTo(("ts",), UTC_EPOCH), None),
    (EqualTo(("tz",), datetime(1970, 1, 1)), None),
    (EqualTo(("day",), datetime(1970, 1, 1)), None),
    (EqualTo(("s",), True), None),
    (EqualTo(("s", "field"), 1), None),
    (EqualTo(("nowhere",), 1), None),
)


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set(SWITCH, "true")
    yield spark
    spark.conf.unset(SWITCH)


def read(spark: SparkSession, db: Database, **options: object) -> DataFrame:
    return spark.read.format("pytrickle").options(dsn=db.dsn, table="edges", **options).load()


def pushed(frame: DataFrame) -> bool:
    """Whether Spark filters nothing itself."""
    return "Filter " not in frame._jdf.queryExecution().optimizedPlan().toString()


def test_filters_become_conditions_where_postgresql_answers_as_spark_does(db: Database) -> None:
    db.execute(EDGES)
    with db.connect(options="-c TimeZone=Asia/Tokyo -c DateStyle=SQL,DMY") as connection:
        columns = {column.name: column for column in relation(connection, "edges").columns}
        for found, expected in FOUND:
            condition = condition_of(found, columns)
            assert (condition is None) is (expected is None), found
            if condition:
                query = filled(
                    "SELECT id FROM edges AS r{where}",
                    where=where([condition.written(sql.Identifier("r", condition.column.name))]),
                )
                assert {row[0] for row in connection.execute(query)} == expected, found


def test_the_database_filters_where_it_answers_as_spark_does(db: Database, pushing: SparkSession) -> None:
    db.execute(EDGES)
    frame = read(pushing, db, pushFilters="true")
    filtered = frame.where("t IN ('x', 'é', '') AND NOT b <=> true")
    assert pushed(filtered) and not pushed(frame.where("t > 'X'"))
    assert {row[0] for row in filtered.select("id").collect()} == {3, 5}


@pytest.mark.parametrize("part", first(0, range(7), then=1))
def test_a_filter_finds_the_same_rows_whoever_applies_it(db: Database, pushing: SparkSession, part: int) -> None:
    conditions = (*EXACT, *INEXACT)[part::7]
    db.execute(EDGES)
    frame, every = read(pushing, db, pushFilters="true"), read(pushing, db)
    (*answers,) = every.selectExpr("id", *(f"({condition})" for condition in conditions)).collect()
    assert len(answers) == 6
    for place, condition in enumerate(conditions, start=1):
        filtered = frame.where(condition)
        assert pushed(filtered) is (condition in EXACT), condition
        expected = {answer[0] for answer in answers if answer[place]}
        assert {row[0] for row in filtered.select("id").collect()} == expected, condition


@pytest.mark.repeats
def test_filters_reach_reads_as_of_a_watermark_and_changes(db: Database, pushing: SparkSession) -> None:
    db.execute(EDGES)
    db.execute("SELECT pgtrickle.create_feed('f', 'edges')")
    db.execute("SELECT pgtrickle.advance_watermark('edges', '2026-03-02 12:00Z')")
    db.execute("UPDATE edges SET t = 'new', day = '2026-01-01', ts = now(), tz = now() WHERE id IN (1, 2, 5, 6)")
    db.execute("SELECT pgtrickle.advance_watermark('edges', '2026-03-02 13:00Z')")
    feed = {"readChangeFeed": "true", "startingVersion": 1, "startingBoundInclusive": "false", "computeUpdates": "true"}
    for options, expected in (({"asOf": "2026-03-02T12:00Z", "partitions": 2}, {1: 1}), (feed, {1: 2, 5: 1, 6: 1})):
        filtered = read(pushing, db, **options, pushFilters="true").where("t IN ('x', 'new') AND s < 5")
        assert pushed(filtered)
        assert Counter(row[0] for row in filtered.select("id").collect()) == expected
    assert not pushed(read(pushing, db, **feed, pushFilters="true").where("_change_type = 'update_preimage'"))


@pytest.mark.repeats
def test_spark_says_what_must_be_switched_on(db: Database, spark: SparkSession) -> None:
    db.execute(EDGES)
    with pytest.raises(PySparkException, match=SWITCH):
        read(spark, db, pushFilters="true").where("id = 1").collect()
