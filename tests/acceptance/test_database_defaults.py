"""Databases whose defaults are not PostgreSQL's: what they change of sessions must not reach how pytrickle works."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from time import sleep

import psycopg
import pytest

import pytrickle
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.servers import OLDEST, Server

DEFAULTS = (
    "quote_all_identifiers = on",
    "default_transaction_isolation = 'serializable'",
    "default_transaction_deferrable = on",
    "standard_conforming_strings = off",
    "IntervalStyle = 'sql_standard'",
    "DateStyle = 'Postgres, DMY'",
    "plpgsql.extra_errors = 'all'",
    "plpgsql.variable_conflict = 'use_column'",
    "bytea_output = 'escape'",
    "plan_cache_mode = 'force_generic_plan'",
    "client_min_messages = 'error'",
    "restrict_nonsystem_relation_kind = 'view, foreign-table'",
)
QUERY = (
    r"SELECT s.kind, s.kind || '\\' AS path, sum(v.took) AS took"
    " FROM sorts AS s JOIN times AS v USING (id) GROUP BY s.kind"
)
CHANGES = (
    "SELECT",
    "DELETE FROM times WHERE id < 4",
    "UPDATE sorts SET kind = 'k7' WHERE id > 5",
    "INSERT INTO times VALUES (1, '-1 day +02:03:04.5')",
)


@pytest.fixture
def odd(empty_db: Database) -> Database:
    """An empty database with odd defaults for every session from now on."""
    name = empty_db.value("SELECT current_database()")
    for default in DEFAULTS:
        empty_db.execute(f"ALTER DATABASE {name} SET {default}")
    return empty_db


def test_stream_tables_live_whatever_sessions_begin_with(odd: Database) -> None:
    pytrickle.install(odd.dsn)
    with odd.connect() as loader, local_client(odd.dsn) as (client, _):
        loader.execute("CREATE TABLE sorts AS SELECT id, 'k' || id % 3 AS kind FROM generate_series(1, 9) AS id")
        loader.execute(
            "CREATE TABLE times AS SELECT id, id * interval '-1 day 3 s' AS took FROM generate_series(1, 9) AS id"
        )
        loader.execute("SELECT pgtrickle.create_watermark_group('loads', ARRAY['sorts', 'times'])")
        loader.execute("SELECT pgtrickle.create_stream_table('st', %s, refresh_mode => 'DIFFERENTIAL')", (QUERY,))
        for number, change in enumerate(CHANGES):
            loader.execute(change.encode())
            for source in ("sorts", "times"):
                loader.execute("SELECT pgtrickle.advance_watermark(%s, %s)", (source, f"2026-01-01 00:0{number}Z"))
            (result,) = client.tick()
            assert (result.stream_table, str(result.action), result.error) == (
                "public.st",
                "DIFFERENTIAL" if number else "FULL",
                None,
            )
            assert not differences(loader, "st", QUERY, exact=True)
            assert client.verify("st").matches
        (status,) = client.status().stream_tables
        assert isinstance(status.staleness, timedelta)
        assert "st" in str(client.explain(query=QUERY))


def test_the_databases_style_of_intervals_is_kept_whoever_creates(odd: Database, tmp_path: Path) -> None:
    pytrickle.install(odd.dsn)
    odd.execute("CREATE TABLE times AS SELECT 1 AS id, interval '1 day 03:00' AS took")
    query = "SELECT id, took::text AS took FROM times"
    (tmp_path / "pytrickle.toml").write_text('project = "times"')
    (tmp_path / "applied.sql").write_text(f"-- pytrickle: schedule = 5m\n{query}\n")
    with local_client(odd.dsn) as (client, _):
        client.create_stream_table("st", query, statement_timeout="1 hour", refresh_mode="DIFFERENTIAL")
        client.alter_stream_table("st", query=f"{query} WHERE id > 0")
        client.apply(tmp_path)
        assert not client.plan(tmp_path)
        assert {result.error for result in client.tick()} == {None}
        assert client.explain(query=query)
    with odd.connect() as reader:
        shown = "SELECT st.took, applied.took, times.took::text FROM st, applied, times"
        assert reader.execute(shown).fetchall() == [("1 3:00:00",) * 3]


def test_a_database_may_have_another_encoding(servers: Callable[[int], Server]) -> None:
    with psycopg.connect(servers(OLDEST).dsn(), autocommit=True) as administrator:
        administrator.execute("CREATE DATABASE western ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    dsn = servers(OLDEST).dsn("western")
    pytrickle.install(dsn)
    with local_client(dsn) as (client, _), psycopg.connect(dsn, autocommit=True, client_encoding="utf8") as loader:
        loader.execute("CREATE TABLE drinks (id int, name text, price text)")
        client.create_stream_table("listed", "SELECT upper(name) || ': £5' AS line, id FROM drinks")
        client.create_stream_table("counted", "SELECT line, count(*) AS n FROM listed GROUP BY line")
        for statement in ("INSERT INTO drinks VALUES (1, 'café')", "INSERT INTO drinks VALUES (2, 'thé'), (3, 'thé')"):
            loader.execute(statement.encode())
            client.tick()
        assert set(loader.execute("TABLE counted").fetchall()) == {("CAFé: £5", 1), ("THé: £5", 2)}
        assert all(client.verify(name).matches for name in ("listed", "counted"))
        tree = [line for (line,) in loader.execute("SELECT tree_line FROM pgtrickle.dependency_tree()")]
        assert tree == ["public.listed", "+-- public.drinks [src]", "`-- public.counted"]


def test_sessions_that_idle_while_others_compute_are_not_ended(db: Database) -> None:
    name = db.value("SELECT current_database()")
    db.execute(f"ALTER DATABASE {name} SET idle_session_timeout = '200ms'")
    db.execute("CREATE TABLE items AS SELECT id FROM generate_series(1, 9) AS id")
    db.execute("CREATE FUNCTION slowly(id int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT id FROM pg_sleep(0.1)'")
    query = "SELECT slowly(id) AS id FROM items"
    db.execute("SELECT pgtrickle.create_stream_table('st', %s)", query)
    with local_client(db.dsn) as (client, _):
        for action in ("FULL", "DIFFERENTIAL"):
            (result,) = client.tick()
            assert (result.action, result.error) == (action, None)
            db.execute("INSERT INTO items SELECT id + 10 FROM items")
            sleep(0.3)
