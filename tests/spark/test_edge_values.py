"""Values at the edges of every type through Spark: carried, joined by, grouped by and summed as PostgreSQL does."""

from collections.abc import Collection

import pytest

from pytrickle.config import EngineName
from tests.conftest import Database
from tests.engines import LEFT_TO_POSTGRESQL, ClientUnder, client_under
from tests.equivalence.oracle import differences
from tests.repeats import first

pytestmark = pytest.mark.long

MOMENTS = (
    "'infinity'", "'-infinity'", "'4713-11-24 00:00 BC'", "'0044-03-15 12:00 BC'", "'294276-12-31 12:59:59.999999'",
    "'1582-10-10 00:00'", "'1900-02-28 23:59:59.9'", "'2024-03-31 02:30'", "'2024-10-27 02:30'", "'0001-01-01 00:00'",
)  # fmt: skip
# A value of each type and row; where there are fewer than rows, NULL follows.
EDGES = {
    "small": ("smallint", ("-32768", "32767", "0", "-1")),
    "whole": ("integer", ("-2147483648", "2147483647", "0", "-1")),
    "big": ("bigint", ("-9223372036854775808", "9223372036854775807", "0", "9007199254740993")),
    "cents": ("numeric(12,2)", ("9999999999.99", "-9999999999.99", "'NaN'", "0.00", "-0.01", "9999999999.99")),
    "fine": ("numeric(27,12)", ("999999999999999.999999999999", "-999999999999999.999999999999", "'NaN'", "1e-12")),
    "large": ("numeric(15,0)", ("999999999999999", "-999999999999999", "'NaN'", "0")),
    "fraction": ("numeric(4,4)", ("0.9999", "-0.9999", "'NaN'", "0.0001")),
    "any_number": ("numeric", ("'NaN'", "'Infinity'", "'-Infinity'", "1.0", "1.00", "-0.000", "1e-12", "9.9e15")),
    "single": ("real", ("'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "1e-45", "3.4028235e38", "0.1")),
    "double": ("double precision", ("'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "5e-324", "1.7976931348623157e308")),
    "day": ("date", ("'infinity'", "'-infinity'", "'4714-11-24 BC'", "'5874897-12-31'", "'0044-03-15 BC'")),
    "moment": ("timestamp", MOMENTS),
    "instant": ("timestamptz", tuple(f"{moment}::timestamp AT TIME ZONE 'UTC'" for moment in MOMENTS)),
    "clock": ("time", ("'00:00'", "'24:00'", "'23:59:59.999999'")),
    "length": ("interval", ("'1 day'", "'24:00'", "'-178000000 years'", "'0.000001 s'", "'30 days'", "'1 mon'")),
    "note": ("text", ("''", "' '", "'a'", "'É'", "U&'E\\0301'", "U&'\\+10FFFF'", "'NULL'", "E'\\\\N\\t\\n\\r'")),
    "padded": ("char(3)", ("''", "'a'", "'a  '", "'abc'")),
    "flag": ("boolean", ("true", "false")),
    "bytes": ("bytea", ("''", "'\\x00'", "'\\xff'", "'\\x5c'")),
    "key": ("uuid", ("'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'")),
    "document": ("jsonb", ("'null'", "'\"\"'", "'1.0'", "'1'", "'{\"a\": [1e400]}'", "'[]'")),
    "numbers": ("integer[]", ("'{}'", "'{NULL}'", "'{{1,2},{3,4}}'", "'[0:1]={1,2}'")),
}  # fmt: skip
ROWS = max(len(values) for _, values in EDGES.values()) + 1
SUMMED = ("small", "whole", "big", "cents", "fine", "large", "fraction", "any_number")
JOIN = "FROM edges JOIN names USING (k)"
QUERIES = {
    "carried": f"SELECT id, name, {', '.join(EDGES)} {JOIN}",
    "unmatched": f"SELECT name, {', '.join(EDGES)} FROM names LEFT JOIN edges USING (k)",
    "shown": f"SELECT id, name, instant::text AS i, day::text AS d, instant::date AS local, length::text AS l {JOIN}",
    **{f"by_{name}": f"SELECT {name}, count(*) AS n, sum(whole) AS s {JOIN} GROUP BY {name}" for name in EDGES},
    **{
        f"sums_of_{name}": f"SELECT name, count({name}) AS n, sum({name}) AS s, avg({name}) AS a {JOIN} GROUP BY name"
        for name in SUMMED
    },
    "extremes": f"SELECT name, min(small) AS a, max(whole) AS b, min(big) AS c, max(big) AS d {JOIN} GROUP BY name",
    **{
        f"joined_by_{name}": f"SELECT l.id, r.id AS other FROM edges l JOIN edges r ON l.{name} = r.{name}"
        for name in ("big", "cents", "any_number", "day", "moment", "instant", "note", "flag", "bytes", "key")
    },
}
# Of values that are equal, such as 1.0 and 1.00 or a day and 24 hours, PostgreSQL shows any as the key of their group.
BY_EQUALS = ("by_any_number", "by_length", "by_document")
CHANGES = (
    f"UPDATE edges SET k = k % 3 + 1, whole = whole / 2 WHERE id <= {ROWS}",
    "UPDATE names SET k = k + 1",
    "DELETE FROM edges WHERE id % 3 = 1",
)
# Sums of these do not fit into Spark's decimals.
TOO_WIDE = ("1e16", "1e-13", "1e1000", "-123456789012345678901234567890.5")


def rows(begin: int) -> str:
    """Write the insertion of all edges, numbered from `begin`."""
    found = []
    for row in range(ROWS):
        values = [values[row] if row < len(values) else "NULL" for _, values in EDGES.values()]
        found.append(f"({begin + row}, {row % 3 + 1}, {', '.join(values)})")
    return f"INSERT INTO edges VALUES {', '.join(found)}"


def create(db: Database) -> None:
    columns = ", ".join(f"{name} {type_name}" for name, (type_name, _) in EDGES.items())
    with db.connect() as connection:
        connection.execute(f"CREATE TABLE edges (id int, k int, {columns})".encode())
        connection.execute("CREATE TABLE names (k int, name text)")
        connection.execute("INSERT INTO names VALUES (1, 'one'), (2, 'two'), (2, NULL), (9, 'nine')")
        connection.execute(rows(1).encode())


def compare(db: Database, zone: str, queries: dict[str, str]) -> None:
    with db.connect(options=zone) as connection:
        wrong = {name: differences(connection, name, query, name not in BY_EQUALS) for name, query in queries.items()}
    assert {name: rows for name, rows in wrong.items() if rows} == {}


def joined_in_spark(client: ClientUnder, names: Collection[str]) -> set[str]:
    return {name for name in names if client.explain(name).data["spark_reads"]}


# Some queries after few changes, or all after all.
RUNS = (
    (("carried", "shown", "sums_of_fine", "joined_by_instant", "by_double", "by_any_number"), 2),
    (tuple(QUERIES), 1 + len(CHANGES)),
)


@pytest.mark.parametrize(("names", "batches"), first(1, RUNS, then=0), ids=["some", "all"])
def test_edge_values_go_through_spark_unchanged(
    db: Database, request: pytest.FixtureRequest, names: tuple[str, ...], batches: int
) -> None:
    """In a session whose time zone is neither Spark's nor the server's, and whose styles are unusual."""
    zone = "-c TimeZone=Asia/Kathmandu -c DateStyle=ISO,DMY -c IntervalStyle=sql_standard -c extra_float_digits=1"
    queries = {name: QUERIES[name] for name in names}
    create(db)
    with db.connect(options=zone) as connection:
        for name, query in queries.items():
            connection.execute("SELECT pgtrickle.create_stream_table(%s, %s)", (name, query))
    with client_under(EngineName.SPARK, db.dsn, request) as client:
        assert joined_in_spark(client, names) == queries.keys()
        client.tick()
        compare(db, zone, queries)
        for change in (rows(ROWS + 1), *CHANGES)[:batches]:
            db.execute(change)
            client.tick()
            compare(db, zone, queries)
        assert {engine for (action, engine) in client.done_by if action != "NO_DATA"} == {"spark"}
        assert client.done_by["FULL", "spark"] == len(queries)
        assert client.done_by["DIFFERENTIAL", "spark"] > (batches - 1) * len(queries)


@pytest.mark.parametrize("wide", first(1, TOO_WIDE, then=0))
def test_a_sum_that_spark_cannot_hold_is_postgresqls_whole_or_not(
    db: Database, request: pytest.FixtureRequest, wide: str
) -> None:
    create(db)
    query = {"sums": QUERIES["sums_of_any_number"]}
    db.execute(f"INSERT INTO edges (id, k, any_number) VALUES (0, 1, {wide})")
    with client_under(EngineName.SPARK, db.dsn, request) as client:
        client.create_stream_table("sums", query["sums"], refresh_mode="DIFFERENTIAL")
        # Once is enough: from then on Spark is not asked for the sum any more, but for its rows.
        for action, engine in (("FULL", "postgres"), ("DIFFERENTIAL", "spark")):
            (result,) = client.tick()
            assert (result.action, result.engine) == (action, engine)
            assert (LEFT_TO_POSTGRESQL in result.reason) == (engine == "postgres")
            compare(db, "", query)
            db.execute(f"UPDATE edges SET any_number = any_number * 1.0, k = 2 WHERE any_number = {wide}")
