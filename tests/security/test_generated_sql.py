"""What is generated means what PostgreSQL itself offers, whatever somebody puts into a schema of the creator's path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.sql import Composable

import pytrickle
from pytrickle.streaming.sink.commit import commit_batch
from pytrickle.streaming.sink.stage import Part, Target
from pytrickle.watermarks import event_time
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.repeats import first
from tests.security.roles import House, Session, ask

# Each fits what is generated better than PostgreSQL's own, and notes as whom it runs.
NOTE = "INSERT INTO mallory.ran VALUES (current_user::text)"
TRAPS = {
    "a function of rows": "CREATE FUNCTION {schema}.generate_series(integer, bigint) RETURNS SETOF bigint LANGUAGE sql"
    " AS $$ SELECT mallory.note(); SELECT pg_catalog.generate_series($1::bigint, $2 + 1) $$",
    "a function of a row": "CREATE FUNCTION {schema}.hash_record_extended(record, integer) RETURNS bigint IMMUTABLE"
    " LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.note(); RETURN 1; END $$",
    "a product": "CREATE FUNCTION {schema}.times(numeric, integer) RETURNS numeric LANGUAGE sql"
    " AS $$ SELECT 1000000::numeric FROM mallory.note() $$;"
    " CREATE OPERATOR {schema}.* (FUNCTION = {schema}.times, LEFTARG = numeric, RIGHTARG = integer);"
    " CREATE FUNCTION {schema}.times(numeric, bigint) RETURNS numeric LANGUAGE sql"
    " AS $$ SELECT 1000000::numeric FROM mallory.note() $$;"
    " CREATE OPERATOR {schema}.* (FUNCTION = {schema}.times, LEFTARG = numeric, RIGHTARG = bigint)",
    "a comparison": "CREATE FUNCTION {schema}.unlike(numeric, integer) RETURNS boolean LANGUAGE sql"
    " AS $$ SELECT false FROM mallory.note() $$;"
    " CREATE OPERATOR {schema}.<> (FUNCTION = {schema}.unlike, LEFTARG = numeric, RIGHTARG = integer)",
}


@dataclass
class Shop:
    """A house where mallory may create in the schema `open`, which is in the path of whoever creates stream tables."""

    house: House
    client: pytrickle.Client
    mallory: Session

    def refresh(self) -> set[str]:
        """Tick, and return what that did with the stream tables."""
        results = self.client.tick()
        assert {result.error for result in results} == {None}
        return {str(result.action) for result in results}

    @property
    def ran(self) -> set[str]:
        """As whom the traps ran."""
        return {role for (role,) in self.mallory.execute("SELECT role FROM mallory.ran")}


@pytest.fixture
def shop(house: House) -> Iterator[Shop]:
    db = house.db
    mallory = house.session("mallory")
    db.execute("CREATE SCHEMA open")
    db.execute("GRANT ALL ON SCHEMA open TO mallory; GRANT USAGE ON SCHEMA open TO PUBLIC")
    for statement in (
        "GRANT USAGE ON SCHEMA mallory TO PUBLIC",
        "CREATE TABLE mallory.ran (role text)",
        "CREATE FUNCTION mallory.note() RETURNS void LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog"
        f" AS $$ BEGIN {NOTE}; EXCEPTION WHEN read_only_sql_transaction THEN NULL; END $$",
        "GRANT INSERT ON mallory.ran TO PUBLIC",
    ):
        mallory.execute(statement)
    house.etl.execute("CREATE TABLE lines (item text, price numeric)")
    house.etl.execute("INSERT INTO lines VALUES ('a', 10), ('a', 10), ('b', 12)")
    with local_client(f"{db.dsn}?user=etl&options=-csearch_path%3Dpublic,open") as (client, _):
        yield Shop(house, client, mallory)


QUERIES = {
    "twice": ("SELECT item, price FROM lines", [("a", 10), ("a", 10), ("a", 10), ("b", 12), ("c", 5)]),
    "sums": ("SELECT item, sum(price) AS total FROM lines GROUP BY item", [("a", 30), ("b", 12), ("c", 5)]),
    "sums_of_sums": (
        "SELECT total, count(*) AS n FROM (SELECT item, sum(price) AS total FROM lines GROUP BY item) AS s GROUP BY 1",
        [(5, 1), (12, 1), (30, 1)],
    ),
    "numbered": (
        "SELECT item, row_number() OVER (PARTITION BY item ORDER BY price) AS n FROM lines",
        [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("c", 1)],
    ),
}


@pytest.mark.parametrize("trap", first(2, TRAPS))
def test_a_better_match_in_the_path_of_the_creator_is_not_called(shop: Shop, trap: str) -> None:
    shop.mallory.execute(TRAPS[trap].format(schema="open").encode())
    for name, (text, _) in QUERIES.items():
        shop.client.create_stream_table(name, text, refresh_mode="DIFFERENTIAL")
    assert shop.refresh() == {"FULL"}
    shop.house.etl.execute("INSERT INTO lines VALUES ('a', 10), ('c', 5)")
    assert shop.refresh() == {"DIFFERENTIAL"}
    for name, (_, expected) in QUERIES.items():
        assert sorted(ask(shop.house.etl, f"SELECT * FROM {name}")) == expected
        assert shop.client.verify(name).matches
    assert shop.ran == set()


@pytest.mark.parametrize("setting", ["search_path", "TimeZone", "; COMMIT; CREATE TABLE public.broken (); --"])
@pytest.mark.parametrize(
    "value",
    first(
        1,
        (
            "UTC'; COMMIT; CREATE TABLE public.broken (); --",
            "pg_catalog; COMMIT; CREATE TABLE public.broken ()",
            r"x\'; CREATE TABLE broken()--",
        ),
    ),
)
def test_a_stored_setting_is_no_statement(shop: Shop, setting: str, value: str) -> None:
    """The second query is one that needs the path of its creator."""
    shop.client.create_stream_table("kept", "SELECT item, price FROM lines")
    shop.house.etl.execute(
        "CREATE FUNCTION every(n numeric) RETURNS SETOF numeric IMMUTABLE LANGUAGE plpgsql"
        " AS 'BEGIN RETURN NEXT n; END'"
    )
    shop.client.create_stream_table("following", "SELECT item, n FROM lines, every(price) AS e (n)")
    changed = "UPDATE pgtrickle.pgt_stream_tables SET session_settings = session_settings || jsonb_build_object(%s, %s)"
    shop.house.db.execute("ALTER ROLE etl SET standard_conforming_strings = off")
    shop.house.db.execute(changed.replace("%s", "%s::text"), setting, value)
    shop.client.tick()
    assert shop.house.db.value("SELECT to_regclass('public.broken') IS NULL")


def test_a_backslash_of_a_query_is_one_whatever_the_roles_default(shop: Shop) -> None:
    shop.house.db.execute("ALTER ROLE etl SET standard_conforming_strings = off")
    with local_client(f"{shop.house.db.dsn}?user=etl") as (client, _):
        client.create_stream_table("kept", r"SELECT item || 'a\\b' AS name FROM lines WHERE item <> 'a\'")
        for action in ("FULL", "DIFFERENTIAL"):
            assert [(str(result.action), result.error) for result in client.tick()] == [(action, None)]
            assert client.verify("kept").matches
            shop.house.etl.execute("INSERT INTO lines VALUES ('c', 1)")
        client.tick()
    found = ask(shop.house.etl, "SELECT DISTINCT name FROM kept ORDER BY 1")
    assert found == [(rf"{item}a\\b",) for item in "abc"]


SETS = ("SET ", "RESET ", "BEGIN", "SELECT pg_catalog.set_config(")


def test_no_statement_of_a_tick_follows_the_path_of_the_refresher(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, (query, _) in QUERIES.items():
        shop.client.create_stream_table(name, query)
    followed: list[str] = []
    execute = psycopg.Cursor.execute

    def spied(self: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        text = query.as_string(self) if isinstance(query, Composable) else str(query)
        # Transactions begin with the path of their session; what only sets something calls nothing, or by its schema.
        idle = self.connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        if idle and not text.lstrip("b'\"").startswith(SETS):
            with psycopg.Cursor(self.connection) as beside:
                execute(beside, "SELECT pg_catalog.current_schemas(false)")
                if {"open", "public"} & set((beside.fetchone() or ([],))[0]):
                    followed.append(text)
        return execute(self, query, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", spied)
        assert shop.refresh() == {"FULL"}
    shop.house.etl.execute("INSERT INTO lines VALUES ('c', 5)")
    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", spied)
        assert shop.refresh() == {"DIFFERENTIAL"}
    assert followed == []


def test_the_sink_reads_event_times_by_what_is_postgresqls_own(db: Database) -> None:
    """A column of another type than the functions have is where a better match may lie."""
    db.execute("CREATE TABLE orders (id int, at timestamptz)")
    db.execute(
        "CREATE FUNCTION public.taken(s bytea, a bytea, b text) RETURNS bytea LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'better match'; END $$;"
        "CREATE AGGREGATE public.string_agg(bytea, text) (SFUNC = public.taken, STYPE = bytea)"
    )
    to = Target(db.dsn, "orders", "files", ("id", "at"))
    with psycopg.connect(db.dsn, autocommit=True) as task:
        create = "SELECT pgtrickle.create_sink_staging('orders', 'files', ARRAY['id', 'at'])"
        ((staging,),) = task.execute(create).fetchall()
        task.execute(f"INSERT INTO pgtrickle_sinks.{staging} VALUES (1, '2026-03-02 12:00Z')")
    assert commit_batch(to, 0, [Part(staging, 1, "a query")], event_time(timedelta(0)), "at")
    assert db.value("SELECT watermark = '2026-03-02 12:00Z' FROM pgtrickle.watermarks()")


# Each fits better than PostgreSQL's own what is written around a query that is read with its creator's path.
AROUND = {
    "a series": "CREATE FUNCTION open.generate_series(integer, bigint) RETURNS SETOF bigint LANGUAGE sql"
    " AS $$ SELECT mallory.note(); SELECT 1::bigint $$",
    "a row as json": "CREATE FUNCTION open.to_jsonb(record) RETURNS jsonb LANGUAGE plpgsql"
    " AS $$ BEGIN PERFORM mallory.note(); RETURN '{}'; END $$",
}
FOLLOWING = {
    "called": "SELECT item, found(price) AS price FROM lines",
    "as_a_set": "SELECT item, n FROM lines, every(price) AS e (n)",
}


@pytest.mark.parametrize("trap", first(1, AROUND))
def test_what_stands_around_a_query_that_follows_the_path_is_not_found_there(shop: Shop, trap: str) -> None:
    etl = shop.house.etl
    for statement in (
        "CREATE FUNCTION twice(n numeric) RETURNS numeric IMMUTABLE LANGUAGE sql AS 'SELECT n + n'",
        "CREATE FUNCTION found(n numeric) RETURNS numeric IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN twice(n); END'",
        "CREATE FUNCTION every(n numeric) RETURNS SETOF numeric IMMUTABLE LANGUAGE plpgsql"
        " AS 'BEGIN RETURN NEXT twice(n); END'",
        "CREATE TABLE events (ends timestamptz, n numeric)",
        "INSERT INTO events VALUES ('2026-03-02 12:00Z', 1), ('2026-03-02 12:00Z', 2)",
        "SELECT pgtrickle.create_watermark_group('alone', ARRAY['events'])",
        "SELECT pgtrickle.advance_watermark('events', '2026-03-02 12:00Z')",
    ):
        etl.execute(statement.encode())
    for name, query in FOLLOWING.items():
        shop.client.create_stream_table(name, query)
    windows = "SELECT ends, sum(found(n)) AS n FROM events GROUP BY ends"
    shop.client.create_stream_table(
        "closed", windows, output_mode="append", window_end="ends", watermark_gating="gate", require_watermark=True
    )
    assert shop.refresh() == {"FULL"}
    shop.mallory.execute(AROUND[trap].encode())
    assert all(result.matches for result in shop.client.verify())
    # What is not refreshed yet is taken away again by generated SQL.
    etl.execute("INSERT INTO lines VALUES ('a', 10), ('c', 5); DELETE FROM lines WHERE item = 'b'")
    etl.execute("INSERT INTO events VALUES ('2026-03-02 12:00Z', 5)")
    assert shop.client.verify("called").matches
    assert shop.refresh() == {"DIFFERENTIAL", "FULL"}
    assert all(result.matches for result in shop.client.verify())
    assert (sorted(ask(etl, "SELECT price FROM called")), shop.ran) == ([(10,), (20,), (20,), (20,)], set())
