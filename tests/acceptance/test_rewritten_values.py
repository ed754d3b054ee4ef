"""A table written anew with other values, of which no trigger tells: by ALTER TYPE, or by another expression."""

import pytest

from pytrickle.catalog.install import render
from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.repeats import on_both_servers

PLAIN = "CREATE TABLE t (a integer, b integer, c text)"
ANY_MIGRATION = 10_000
KINDS = {
    "table": PLAIN,
    "parent": f"{PLAIN}; CREATE TABLE child () INHERITS (t)",
    "partitioned": f"{PLAIN} PARTITION BY LIST (a); CREATE TABLE child PARTITION OF t DEFAULT",
    "child": "CREATE TABLE base (a integer, b integer, c text); CREATE TABLE t () INHERITS (base)",
}
WHOLE_ROWS = {
    "rows": "SELECT to_jsonb(t) AS j FROM t",
    "named": "SELECT t.a, to_jsonb(t) AS j FROM t",
    "largest": "SELECT max(t::text) AS m, count(*) AS n FROM t",
    "viewed": "SELECT j FROM seen",
}
ALTERED = {
    "same type": "ALTER TABLE {} ALTER b TYPE integer USING b + 10",
    "and back": "ALTER TABLE {0} ALTER b TYPE text USING b || '0'; ALTER TABLE {0} ALTER b TYPE integer USING b::int",
}
GENERATED = "CREATE TABLE t (a integer, g integer GENERATED ALWAYS AS (a * 2) STORED)"
PARTITIONED = f"{GENERATED} PARTITION BY LIST (a); CREATE TABLE child PARTITION OF t DEFAULT"
INHERITED = f"{GENERATED}; CREATE TABLE child () INHERITS (t)"
SET = "ALTER TABLE {} ALTER g SET EXPRESSION AS (a * {})"
EXPRESSIONS = {
    "and back": (GENERATED, (SET.format("t", 3), "INSERT INTO t VALUES (3)", SET.format("t", 2))),
    "of all partitions, and back": (PARTITIONED, (SET.format("t", 3), "INSERT INTO t VALUES (3)", SET.format("t", 2))),
    "of a partition": (PARTITIONED, (SET.format("child", 5),)),
    "of a child": (INHERITED, (SET.format("child", 5), "INSERT INTO child VALUES (3)")),
}


def create(client: Client, db: Database, tables: str, queries: dict[str, str]) -> None:
    db.execute(tables)
    db.execute("INSERT INTO t VALUES (1), (2)")
    if "child" in tables and "PARTITION" not in tables:
        db.execute("INSERT INTO child VALUES (4)")
    for name, query in queries.items():
        client.create_stream_table(name, query)
    client.tick()


@pytest.mark.parametrize("altered", ALTERED)
@pytest.mark.parametrize("kind", KINDS)
def test_other_values_in_whole_rows_are_noticed(every_db: Database, kind: str, altered: str) -> None:
    with local_client(every_db.dsn) as (client, _):
        view = "; CREATE VIEW seen AS SELECT to_jsonb(t) AS j FROM t"
        create(client, every_db, KINDS[kind] + view, WHOLE_ROWS | {"apart": "SELECT a FROM t"})
        every_db.execute("UPDATE t SET b = a, c = 'x'")
        client.tick()
        every_db.execute(ALTERED[altered].format("base" if kind == "child" else "t"))
        client.tick()
        for name, query in WHOLE_ROWS.items():
            assert not differences(every_db.connect(), name, query, True), name
        every_db.execute("DELETE FROM t WHERE a = 1")
        assert {result.action for result in client.tick()} == {"DIFFERENTIAL"}


def test_other_values_in_the_only_column_are_noticed(every_db: Database) -> None:
    """Nothing but that column tells whether the table was written anew; what inherits is captured row by row."""
    every_db.execute(
        "CREATE TABLE base (b integer); CREATE TABLE child () INHERITS (base); INSERT INTO child VALUES (1)"
    )
    with local_client(every_db.dsn) as (client, _):
        client.create_stream_table("rows", "SELECT to_jsonb(child) AS j FROM child")
        client.tick()
        every_db.execute("ALTER TABLE base ALTER b TYPE integer USING b + 10")
        client.tick()
    assert every_db.execute("SELECT j FROM rows") == [({"b": 11},)]


@pytest.mark.parametrize(
    "harmless",
    [
        "ALTER TABLE t ALTER b SET STATISTICS 10, ALTER b SET DEFAULT 3, ALTER b SET NOT NULL",
        "VACUUM FULL t",
        "CLUSTER t USING t_a_idx",
        "ALTER TABLE t ALTER c SET STORAGE EXTERNAL; REINDEX TABLE t; ANALYZE t",
    ],
)
def test_what_changes_no_value_is_left_alone(db: Database, harmless: str) -> None:
    with local_client(db.dsn) as (client, _):
        create(client, db, f"{PLAIN}; CREATE INDEX ON t (a)", WHOLE_ROWS | {"viewed": "SELECT t::text AS j FROM t"})
        db.execute("UPDATE t SET b = a, c = 'x'")
        client.tick()
        for statement in harmless.split("; "):
            db.execute(statement)
        assert {result.action for result in client.tick()} == {"NO_DATA"}
        assert db.value("SELECT pgtrickle.capture_problem('t')") is None


@on_both_servers
@pytest.mark.parametrize("case", EXPRESSIONS)
def test_another_expression_is_noticed(every_db: Database, case: str) -> None:
    if every_db.version < 17:
        pytest.skip("SET EXPRESSION came with PostgreSQL 17")
    tables, changes = EXPRESSIONS[case]
    queries = {"rows": "SELECT a, g FROM t", "sums": "SELECT sum(g) AS g, count(*) AS n FROM t"}
    with local_client(every_db.dsn) as (client, _):
        create(client, every_db, tables, queries)
        for change in changes:
            every_db.execute(change)
        results = client.tick()
        assert {result.action for result in results} == {"REINITIALIZE"}
        assert all("expression of a generated column was changed" in str(result.reason) for result in results)
        for name, query in queries.items():
            assert not differences(every_db.connect(), name, query, True), name
        every_db.execute("DELETE FROM t WHERE a = 1")
        assert {result.action for result in client.tick()} == {"DIFFERENTIAL"}


def test_an_upgraded_catalog_notices_it_from_then_on(db: Database) -> None:
    with local_client(db.dsn) as (client, _):
        create(client, db, GENERATED, {"rows": "SELECT a, g FROM t"})
        former = "regexp_replace(trigger_stamp, '/[^ ]*', '')"
        db.execute(f"UPDATE pgtrickle.pgt_change_tracking SET trigger_stamp = {former}")
        assert {result.action for result in client.tick()} == {"NO_DATA"}
        assert db.value("SELECT pgtrickle.capture_problem('t')") is None
        with db.connect() as connection, connection.transaction():
            connection.execute(render(ANY_MIGRATION).encode(), prepare=False)
        assert "/" in db.value("SELECT split_part(trigger_stamp, ' ', 1) FROM pgtrickle.pgt_change_tracking")
        assert {result.action for result in client.tick()} == {"NO_DATA"}
