"""Few rows travel as text within a parameter: whatever they hold, they arrive as they were."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pytrickle
from pytrickle.apply import commit, few_rows
from pytrickle.client.client import Client
from pytrickle.errors import StreamTableDrifted
from tests.conftest import Database
from tests.repeats import first

# The column names and their types, and values that the text of a row or an array could confuse.
TYPES = (
    "CREATE TYPE mood AS ENUM ('so, so', 'well')",
    "CREATE DOMAIN code AS text CHECK (length(VALUE) < 9)",
    "CREATE TYPE point3 AS (x int, label text)",
)
VALUES = {
    "text": (
        "''",
        "'NULL'",
        "'a,b'",
        "'\"quoted\"'",
        "E'back\\\\slash'",
        "E'two\\nlines\\r\\t'",
        "' '",
        "'{}'",
        "'(,)'",
        "'\\.'",
    ),
    "text[]": ("'{}'", "ARRAY['a,b', NULL, 'NULL', '', '\"']", "'{{a},{b}}'", "'[0:1]={a,b}'"),
    "bytea": ("'\\x00ff5c22'", "''"),
    "character(4)": ("'a'", "''"),
    "numeric": ("'NaN'", "1.0", "1.00", "'-Infinity'"),
    "numeric(6,2)": ("-0.50", "9999.99"),
    "double precision": ("'-0'", "0.1", "'NaN'", "1e-300"),
    "jsonb": ('\'{"a": [1, "x,\\"y"]}\'', "'null'", "'\"\"'"),
    "json": ("'{\"b\" : 1}'",),
    "interval": ("'1 mon -2 days 03:04:05.6'",),
    "timestamp with time zone": ("'2020-02-29 12:00:00.123456+05'", "'infinity'"),
    "int4range": ("'empty'", "'[1,5)'", "'(,)'"),
    "mood": ("'so, so'",),
    "code": ("'a\"b'",),
    "point3": ("ROW(1, 'a,b(\")')", "ROW(NULL, NULL)", "ROW(NULL, '')"),
    "point3[]": ("ARRAY[ROW(1, 'x\"')::point3, NULL]",),
    "tsvector": ("'''a b'':1 c:2'",),
    "inet": ("'10.0.0.1/8'",),
    "boolean": ("true", "false"),
    '"char"': ("'x'", "''"),
    "name": ("'a\"b'",),
}


GROUPED = """
SELECT k, count(*) AS n, sum(v) AS total, min(v) AS least, avg(v) AS mean, array_agg(v ORDER BY id) AS all_of_them
FROM t GROUP BY k
"""


@pytest.fixture
def client(every_db: Database) -> Iterator[Client]:
    with pytrickle.connect(every_db.dsn, engine="postgres") as client:
        yield client


@pytest.fixture
def only_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """See to it that what follows the first load is applied without temporary tables."""
    monkeypatch.setattr(commit, "apply_many", None)


def refreshed(client: Client, name: str) -> tuple[int, int]:
    """Refresh a stream table by its changes, compare it with its query, and return rows inserted and deleted."""
    result = client.refresh(name)
    assert (result.action, result.error) == ("DIFFERENTIAL", None)
    assert client.verify(name).matches
    return result.rows_inserted, result.rows_deleted


@pytest.mark.parametrize("type_name", first(12, VALUES))
@pytest.mark.usefixtures("only_few")
def test_every_value_comes_and_goes_as_it_is(every_db: Database, client: Client, type_name: str) -> None:
    for statement in TYPES:
        every_db.execute(statement)
    every_db.execute(f"CREATE TABLE t (id int PRIMARY KEY, v {type_name})")
    client.create_stream_table("kept", 'SELECT id, v, id % 3 AS "100% sure" FROM t')
    client.refresh("kept")
    values = [*VALUES[type_name], "NULL"]
    for number, value in enumerate(values):
        every_db.execute(f"INSERT INTO t VALUES ({number}, {value})")
    assert refreshed(client, "kept") == (len(values), 0)
    shown, stored = (
        every_db.execute(f"SELECT id, v::text, v IS NULL FROM {name} ORDER BY id") for name in ("kept", "t")
    )
    assert shown == stored
    every_db.execute(f"UPDATE t SET v = NULL WHERE id < {len(values) - 1}")
    assert refreshed(client, "kept")[0] <= len(values) - 1
    every_db.execute("DELETE FROM t")
    assert refreshed(client, "kept") == (0, len(values))


@pytest.mark.parametrize("type_name", first(5, [name for name in VALUES if name not in {"json", "point3", "point3[]"}]))
@pytest.mark.usefixtures("only_few")
def test_groups_of_every_value_come_and_go(every_db: Database, client: Client, type_name: str) -> None:
    for statement in TYPES:
        every_db.execute(statement)
    every_db.execute(f"CREATE TABLE t (id int PRIMARY KEY, k {type_name}, v numeric)")
    client.create_stream_table("grouped", GROUPED)
    client.refresh("grouped")
    for number, value in enumerate([*VALUES[type_name], "NULL"]):
        every_db.execute(f"INSERT INTO t VALUES ({2 * number}, {value}, {number}), ({2 * number + 1}, {value}, 0.50)")
    refreshed(client, "grouped")
    for change in ("UPDATE t SET v = v + 1 WHERE id % 4 = 1", "DELETE FROM t WHERE id % 2 = 0", "DELETE FROM t"):
        every_db.execute(change)
        refreshed(client, "grouped")
    assert every_db.execute("TABLE grouped") == []


@pytest.mark.usefixtures("only_few")
def test_copies_of_a_row_go_one_by_one(every_db: Database, client: Client) -> None:
    every_db.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    every_db.execute("INSERT INTO t SELECT n, n % 2 FROM generate_series(1, 10) AS n")
    for name, query in {
        "copies": "SELECT v FROM t",
        "bare": "SELECT FROM t",
        "all": "SELECT sum(v) AS s FROM t",
    }.items():
        client.create_stream_table(f'"{name}"', query)
        client.refresh(f'"{name}"')
    every_db.execute("DELETE FROM t WHERE id < 4")
    every_db.execute("INSERT INTO t VALUES (20, 7), (21, 7)")
    assert refreshed(client, "copies") == (2, 3)
    assert refreshed(client, "bare") == (0, 1)
    assert refreshed(client, '"all"') == (1, 1)
    every_db.execute("DELETE FROM t")
    assert refreshed(client, "copies") == (0, 9)
    assert refreshed(client, '"all"') == (1, 1)


@pytest.mark.usefixtures("only_few")
def test_the_first_rows_follow_few_changes(every_db: Database, client: Client) -> None:
    every_db.execute("CREATE TABLE t (id int PRIMARY KEY, k int, v int)")
    every_db.execute("INSERT INTO t SELECT n, n % 4, n FROM generate_series(1, 20) AS n")
    client.create_stream_table("first_rows", "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 3")
    client.create_stream_table("first_groups", "SELECT k, sum(v) AS s FROM t GROUP BY k ORDER BY s, k LIMIT 2")
    client.tick()
    for change in (
        "INSERT INTO t VALUES (30, 1, 19)",
        "UPDATE t SET v = 0 WHERE id = 20",
        "DELETE FROM t WHERE id < 5",
    ):
        every_db.execute(change)
        refreshed(client, "first_rows")
        refreshed(client, "first_groups")
    assert every_db.execute("SELECT id FROM first_rows ORDER BY v DESC, id") == [(19,), (30,), (18,)]


@pytest.mark.parametrize("most_rows", (0, 4))
def test_few_rows_and_many_come_to_the_same(
    every_db: Database, client: Client, most_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_rows, "MOST_ROWS", most_rows)
    monkeypatch.setattr(few_rows, "MOST_GROUPS", most_rows)
    every_db.execute("CREATE TABLE t (id int PRIMARY KEY, k int, v numeric)")
    client.create_stream_table("grouped", GROUPED)
    client.create_stream_table("kept", "SELECT id, v FROM t WHERE k > 1")
    client.tick()
    for last in (3, 4, 5, 20):
        every_db.execute(
            "INSERT INTO t SELECT n, n %% 7, n * 1.5 FROM generate_series(%s + 1, 2 * %s) AS n",
            30 * last,
            15 * last + 2,
        )
        refreshed(client, "grouped")
        refreshed(client, "kept")


def test_a_stored_row_that_is_missing_is_noticed(every_db: Database, client: Client) -> None:
    every_db.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    every_db.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    client.create_stream_table("kept", "SELECT id, v FROM t")
    client.refresh("kept")
    for statement in (
        "ALTER TABLE kept DISABLE TRIGGER USER",
        "DELETE FROM kept WHERE id = 1",
        "ALTER TABLE kept ENABLE ALWAYS TRIGGER pgtrickle_guard, ENABLE REPLICA TRIGGER pgtrickle_guard_rows",
    ):
        every_db.execute(statement)
    every_db.execute("UPDATE t SET v = 5")
    with pytest.raises(StreamTableDrifted, match="lacks 1 of the 2 rows"):
        client.refresh("kept")
    assert every_db.execute("TABLE kept") == [(2, 2)]
    assert client.refresh("kept").action == "REINITIALIZE"
    assert client.verify("kept").matches
