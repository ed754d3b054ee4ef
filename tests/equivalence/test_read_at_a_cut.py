"""Whole tables read at a cut while later changes are there."""

import re
from typing import Any

import psycopg
import pytest

import pytrickle.inspect.verify
from pytrickle.plan.at_cut import AT_CUT, query_at
from pytrickle.plan.postgres.consolidate import WEIGHT
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.repeats import first

CALLS = ("sum(v)", "bit_or(v)", "array_agg(v ORDER BY id)", "every(v > 1)")


@pytest.mark.parametrize("call", CALLS)
def test_aggregates_keep_their_groups_beyond_the_frontier(db: Database, call: str) -> None:
    db.execute("CREATE TABLE s (id int, k int, v int)")
    db.execute("INSERT INTO s VALUES (1, 1, 1), (2, 1, 2), (3, 2, 3)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", f"SELECT k, {call} AS c FROM s GROUP BY k")
        client.tick()
        db.execute("INSERT INTO s VALUES (4, 1, 4)")
        assert client.verify("st").matches


LOADED = (
    "SELECT id, v FROM s WHERE v > 1",
    "SELECT s.id, o.k FROM ONLY s JOIN ONLY o AS o (p, k) ON o.k = s.k",
    "SELECT s.id, o.k FROM s LEFT JOIN o ON o.k = s.k",
    "SELECT id FROM s WHERE EXISTS (SELECT FROM o WHERE o.k = s.k)",
    "SELECT id FROM s WHERE k NOT IN (SELECT k FROM o)",
    "SELECT id, 10 / (k - 1) AS q FROM s WHERE NOT EXISTS (SELECT FROM o WHERE o.k = s.k)",
    "SELECT 10 / (k - 1) AS q, count(*) AS n FROM s WHERE NOT EXISTS (SELECT FROM o WHERE o.k = s.k) GROUP BY 1",
    "SELECT j.a FROM (s JOIN o ON o.k = s.k) AS j (a, b, c, d)",
    "SELECT k, sum(v) AS v, min(v) AS m FROM s GROUP BY k",
    "SELECT o.k, count(*) AS n FROM o LEFT JOIN s ON o.k = s.k GROUP BY o.k",
    "SELECT DISTINCT k FROM s WHERE NOT EXISTS (SELECT FROM o WHERE o.k = s.k)",
    "SELECT k FROM s EXCEPT SELECT k FROM o",
    "SELECT id, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM s",
    "SELECT id, v FROM s ORDER BY v DESC, id LIMIT 2",
    "WITH RECURSIVE w AS (SELECT id FROM s UNION SELECT id + 1 FROM w WHERE id < 3) SELECT id FROM w",
)


@pytest.mark.parametrize("mode", first(1, ("AUTO", "FULL")))
def test_a_first_load_and_a_full_refresh_stop_at_the_cut(db: Database, mode: str) -> None:
    db.execute("CREATE TABLE s (id int, k int, v int); CREATE TABLE o (id int, k int)")
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        client.create_watermark_group("both", ["s", "o"])
        for number, query in enumerate(LOADED):
            client.create_stream_table(f"st{number}", query, watermark_gating="hold_back", refresh_mode=mode)
        for step in (1, 2):
            db.execute(f"INSERT INTO s SELECT i, i % 4, i % 3 + {step} FROM generate_series(1, 8) AS i")
            db.execute("INSERT INTO o VALUES (1, 1), (1, 1), (3, 3)")
            db.execute(f"CREATE SCHEMA seen{step}")
            for source in "so":
                db.execute(f"CREATE TABLE seen{step}.{source} AS TABLE public.{source}")
                db.execute(f"SELECT pgtrickle.advance_watermark('{source}', '2024-01-0{step}Z')")
            db.execute("DELETE FROM s WHERE id > 5; UPDATE s SET v = v + 9; DELETE FROM o WHERE k = 3")
            db.execute("INSERT INTO s VALUES (0, 9, 9); INSERT INTO o VALUES (2, 2)")
            assert [result.error for result in client.tick() if result.error] == []
            connection.execute(f"SET search_path = seen{step}".encode())
            for number, query in enumerate(LOADED):
                assert not differences(connection, f"public.st{number}", query, True), query


def test_a_first_load_reads_each_table_once_whatever_lies_beyond_the_cut(db: Database) -> None:
    """Else it would be read again for each way in which tables meet what came after: 16 times for four of them."""
    db.execute("CREATE TABLE s (id int, k int, v int); CREATE TABLE o (id int, k int)")
    query = "SELECT s.id, {} FROM s JOIN o ON o.k = s.k JOIN s AS t ON t.id = o.id JOIN o AS p ON p.id = t.k {}"
    queries = {"rows": query.format("t.v", ""), "sums": query.format("sum(t.v) AS v", "GROUP BY s.id")}
    with local_client(db.dsn) as (client, _):
        client.create_watermark_group("both", ["s", "o"])
        for name, text in queries.items():
            client.create_stream_table(name, text, watermark_gating="hold_back")
        for source in "so":
            db.execute(f"INSERT INTO {source} SELECT i, i % 3 FROM generate_series(1, 9) AS i")
            db.execute(f"SELECT pgtrickle.advance_watermark('{source}', '2024-01-01Z')")
        expected = {name: sorted(db.execute(text), key=repr) for name, text in queries.items()}
        db.execute("INSERT INTO s SELECT i, i % 3 FROM generate_series(1, 20) AS i; DELETE FROM o WHERE id < 4")
        for name in queries:
            read = client.explain(name).sql
            assert [read.count(f'"public"."{source}"') for source in "so"] == [2, 2], read
        assert {result.action for result in client.tick()} == {"FULL"}
        for name, rows in expected.items():
            assert sorted(db.execute(f"TABLE {name}"), key=repr) == rows


def test_later_changes_that_statistics_do_not_know_of_are_not_joined(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL expects one row of them then, and would compare each of many with each."""
    db.execute("CREATE TABLE s (k int, v int) WITH (autovacuum_enabled = off)")
    db.execute("INSERT INTO s SELECT i % 500, i % 3 FROM generate_series(1, 2000) AS i")
    queries = []

    def recorded(*given: Any) -> str:
        queries.append(query_at(*given))
        return queries[-1]

    monkeypatch.setattr(pytrickle.inspect.verify, "query_at", recorded)
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", "SELECT k, v FROM s")
        client.tick()
        db.execute("UPDATE s SET v = v + 1; ANALYZE")
        client.tick()
        db.execute("DELETE FROM s WHERE v = 1 AND ctid NOT IN (SELECT min(ctid) FROM s GROUP BY k)")
        db.execute("UPDATE s SET v = 7 WHERE v = 2; INSERT INTO s SELECT k, v FROM s WHERE v = 3")
        assert client.verify("st").matches
        assert db.value("SELECT count(*) FROM st") == 2000
    (query,) = queries
    plan = "\n".join(line for (line,) in db.execute(f"EXPLAIN {query}"))
    assert "Seq Scan on changes_" in plan
    assert "Join" not in plan
    assert "Nested Loop" not in plan


@pytest.mark.parametrize("name", sorted({WEIGHT, *re.findall(r"pgt_\w+", AT_CUT)}))
def test_no_source_has_a_column_of_a_name_that_it_is_read_with(db: Database, name: str) -> None:
    db.execute(f"CREATE TABLE s ({name} int)")
    with pytest.raises(psycopg.errors.DuplicateColumn, match="a name that refreshes need for themselves"):
        db.execute("SELECT pgtrickle_private.refuse_reserved_columns('s')")
