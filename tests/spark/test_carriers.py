"""The proof of what Spark compares: keys as text are equal in Spark exactly where PostgreSQL finds the keys equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytrickle.catalog.definition import ChangeRange, Definition, Source, SourceColumn
from pytrickle.compute.spark.dataframes import result_of
from pytrickle.compute.spark.jdbc import PinnedReader
from pytrickle.database import exported_snapshot, jdbc_target
from pytrickle.plan.algebra.relation import Equality, Expr, Join, Predicate, Project, Scan
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.equated import TEXTUAL
from pytrickle.plan.spark import key_encoding
from pytrickle.plan.spark import terms as spark_join
from pytrickle.plan.spark.query import spark_query
from tests.conftest import Database
from tests.repeats import in_parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTEGERS = ["0", "1", "-1", "32767", "-32768"]
TEXTS = [
    "''", "' '", "'a'", "'a '", "' a'", "'A'", "'é'", "U&'e\\0301'", "E'\\t'", "E'a\\n'", "E'\\x01'", "'NULL'", "'\\N'",
    "'1.0'", "'='", "'ß'", "'ı'", "'😀'", '\'"\'',
]  # fmt: skip
NUMBERS = [
    "0", "0.00", "'-0'", "1", "1.0", "1.00", "-1.50", "-1.5", "100", "1e2", "1e-16", "99999999999999999999.5",
    "99999999999999999999.50", "'NaN'", "'Infinity'", "'-Infinity'",
]  # fmt: skip
MOMENTS = [
    "'infinity'", "'-infinity'", "'0044-03-15 BC'", "'0044-03-15'", "'4713-11-25 BC'", "'2024-10-27 00:30Z'",
    "'2024-10-27 01:30Z'", "'2024-10-27 02:30+02'", "'2024-03-31 01:30Z'", "'2024-03-31 03:30'", "'2024-02-29'",
    "'2024-02-29 00:00:00.000001'", "'2024-02-29 00:00:00.1'", "'2024-02-29 00:00:00.100'", "'1890-01-01 12:00'",
]  # fmt: skip
EDGES = {
    "int2": ("smallint", INTEGERS),
    "int4": ("integer", [*INTEGERS, "32768", "2147483647"]),
    "int8": ("bigint", [*INTEGERS, "32768", "2147483647", "2147483648", "9223372036854775807"]),
    "text": ("text", TEXTS),
    "varchar": ("varchar(5)", TEXTS),
    "numeric": ("numeric", NUMBERS),
    "cents": ("numeric(30,2)", [number for number in NUMBERS if "Inf" not in number]),
    "uuid": ("uuid", ["md5('a')::uuid", "upper(md5('a'))::uuid", "md5('b')::uuid", "md5('')::uuid"]),
    "date": ("date", [moment for moment in MOMENTS if ":" not in moment]),
    "timestamp": ("timestamp", MOMENTS),
    "timestamptz": ("timestamptz", MOMENTS),
    "bool": ("boolean", ["true", "false", "'t'"]),
    "bytea": ("bytea", ["''", "'\\x00'", "'\\x0000'", "'a'", "'\\x61'", "'\\x20'", "'\\xff'", "'\\xFF'"]),
}
PAIRS = (
    ("int2", "int4"), ("int4", "int8"), ("int8", "int2"), ("text", "text"), ("text", "varchar"), ("numeric", "numeric"),
    ("numeric", "cents"), *((name, name) for name in sorted(key_encoding.CANONICAL)),
)  # fmt: skip
# What a cast to text alone would get wrong: the carrier of numerics without trim_scale, and types without a carrier.
UNFIT = {
    "numeric": ("numeric", NUMBERS),
    "float8": ("double precision", ["0", "'-0'", "1", "'NaN'"]),
    "interval": ("interval", ["'1 day'", "'24:00'", "'1 mon'", "'30 days'"]),
    "jsonb": ("jsonb", ["'1'", "'1.0'", "'\"1\"'"]),
}
SETTINGS = ("SET LOCAL TimeZone = 'Europe/Berlin'",)
OPERATORS = ("=", "IS NOT DISTINCT FROM")
Pair = tuple[str, str]
Comparison = tuple[str, str, str]
Matches = dict[Comparison, set[tuple[str, str]]]


@in_parts(2)
def test_every_carrier_is_equal_exactly_where_postgres_finds_the_values_equal(
    db: Database, spark: SparkSession, nth: int
) -> None:
    """Equal by either operator: NULL equals NULL for one, for no type is it equal to a value of the other side."""
    _create_edges(db, EDGES)
    pairs = PAIRS[nth::2]
    comparisons = tuple((*pair, operator) for pair in pairs for operator in OPERATORS)
    expected = _in_postgres(db, comparisons)
    assert all(expected.values())
    assert all(expected[(*pair, OPERATORS[0])] < expected[(*pair, OPERATORS[1])] for pair in pairs)
    assert _in_spark(db, spark, comparisons) == expected


def test_every_type_with_a_carrier_has_edge_values() -> None:
    assert key_encoding.INTEGER | key_encoding.CANONICAL | TEXTUAL | {"numeric"} == EDGES.keys() - {"cents"}
    assert {name for pair in PAIRS for name in pair} == EDGES.keys()


@pytest.mark.repeats
def test_a_cast_to_text_alone_would_not_do(db: Database, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    _create_edges(db, UNFIT)
    comparisons = tuple((name, name, operator) for name in UNFIT for operator in OPERATORS)
    expected = _in_postgres(db, comparisons)
    monkeypatch.setattr(key_encoding, "_template", lambda equality, left, right: "CAST({} AS text)")
    found = _in_spark(db, spark, comparisons)
    assert [each for each in comparisons if found[each] == expected[each]] == []


@pytest.mark.repeats
def test_null_without_a_mark_would_be_taken_for_the_empty_text(
    db: Database, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    _create_edges(db, EDGES)
    comparisons = (("text", "text", OPERATORS[1]), ("text", "varchar", OPERATORS[1]))
    expected = _in_postgres(db, comparisons)
    monkeypatch.setattr(spark_join, "carrier", lambda equality, left, right: "coalesce(CAST({} AS text), '')")
    found = _in_spark(db, spark, comparisons)
    assert [each for each in comparisons if found[each] == expected[each]] == []


def _create_edges(db: Database, edges: dict[str, tuple[str, list[str]]]) -> None:
    """Fill one table that has a column for every type; its row n holds the nth value of each, or NULL."""
    columns = ", ".join(f"{name} {type_name}" for name, (type_name, _) in edges.items())
    db.execute(f"CREATE TABLE edges (id int, {columns})")
    for row in range(max(len(values) for _, values in edges.values()) + 1):
        items = ", ".join(values[row] if row < len(values) else "NULL" for _, values in edges.values())
        db.execute(f"INSERT INTO edges VALUES ({row}, {items})")


def _in_postgres(db: Database, comparisons: tuple[Comparison, ...]) -> Matches:
    joined = "SELECT l.id::text, r.id::text FROM edges l JOIN edges r ON l.{0} {2} r.{1}"
    return {each: set(db.execute(joined.format(*each))) for each in comparisons}


def _in_spark(db: Database, spark: SparkSession, comparisons: tuple[Comparison, ...]) -> Matches:
    """Join the table with itself by every pair of columns, as the terms of one delta."""
    ranges = {1: ChangeRange(1, None, None)}
    terms = spark_join.spark_terms(tuple(_term(each) for each in comparisons), _definition(db), ranges)
    assert terms is not None
    with exported_snapshot(db.dsn) as snapshot:
        reader = PinnedReader(spark, jdbc_target(db.connect()), snapshot.name, SETTINGS)
        with result_of(spark_query(terms, None, 1), reader) as frame:
            rows = frame.collect()
    found: Matches = {each: set() for each in comparisons}
    for row in rows:
        assert row[WEIGHT] == 1
        found[row["left"], row["right"], row["operator"]].add((row["l"], row["r"]))
    return found


def _term(comparison: Comparison) -> Project:
    left, right, operator = comparison
    null_safe = operator != OPERATORS[0]
    equality = Predicate(Expr("...", frozenset("lr")), Equality(("l", left), ("r", right), null_safe=null_safe))
    told = zip(("left", "right", "operator"), comparison, strict=True)
    names = tuple((name, Expr(f"'{text}'", frozenset())) for name, text in told)
    identities = tuple((alias, Expr(f'"{alias}".id', frozenset({alias}))) for alias in "lr")
    scans = tuple(Scan(alias, 1, ()) for alias in "lr")
    return Project(Join(scans, (equality,)), names + identities)


def _definition(db: Database) -> Definition:
    found = db.execute(
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod), t.typname"
        " FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid"
        " WHERE a.attrelid = 'edges'::regclass AND a.attnum > 0"
    )
    columns = tuple(SourceColumn(name, type_name, base_type, True) for name, type_name, base_type in found)
    names = tuple(column.name for column in columns)
    source = Source(1, "public", "edges", "TABLE", columns, names, None, frozenset(), 1, 100)
    return Definition(1, "public", "st", "", (), (source,), (("x", "integer"),), frozenset(), frozenset(), None)
