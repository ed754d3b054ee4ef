"""A stream table can be created and waited for in one call; nothing of the caller's path runs inside it."""

from __future__ import annotations

import psycopg
import pytest

from tests.conftest import Database
from tests.mirror.conftest import Mirror
from tests.mirror.test_refresh_waits import told
from tests.sql.checks import refused

CREATE = "pgtrickle.create_and_load_stream_table('totals', 'SELECT sum(amount) AS s FROM sales', '1 day')"
INSIDE = f"CREATE FUNCTION inside() RETURNS void LANGUAGE plpgsql AS $$ BEGIN CALL {CREATE}; END $$"
ARGUMENTS = """
SELECT proargnames, format_type(t.oid, NULL), pg_get_function_arg_default(p.oid, t.place::integer)
FROM pg_proc AS p CROSS JOIN unnest(p.proargtypes) WITH ORDINALITY AS t(oid, place)
WHERE p.pronamespace = 'pgtrickle'::regnamespace AND p.proname = %s ORDER BY t.place
"""


@pytest.fixture
def sales(mirror: Mirror) -> Mirror:
    mirror.run("CREATE TABLE sales (id int PRIMARY KEY, amount int)", "INSERT INTO sales VALUES (1, 10), (2, 20)")
    return mirror


def test_the_rows_are_there_when_the_call_returns(sales: Mirror) -> None:
    with sales.refresher():
        assert told(sales.db, f"CALL {CREATE}") == []
        assert sales.rows("TABLE totals") == [(30,)]
    assert sales.rows("SELECT action, status FROM pgtrickle.refresh_history('totals')") == [("FULL", "COMPLETED")]


def test_without_a_refresher_a_notice_says_so_and_the_request_is_kept(sales: Mirror) -> None:
    assert told(sales.db, f"CALL {CREATE}") == ["no refresher runs: the request is served when one does"]
    assert [result.action for result in sales.tick()] == ["FULL"]
    assert sales.rows("TABLE totals") == [(30,)]


def test_it_takes_what_create_stream_table_takes_and_a_timeout(db: Database) -> None:
    function, procedure = (
        [
            (names[place], kind, default)
            for place, (names, kind, default) in enumerate(db.execute(ARGUMENTS, name))
            if names[place] != "initialize"
        ]
        for name in ("create_stream_table", "create_and_load_stream_table")
    )
    timeout = ("timeout", "interval", "NULL::interval")
    assert procedure == [*function[:-1], timeout, function[-1]]


def test_every_option_reaches_the_stream_table(sales: Mirror) -> None:
    options = "tier => 'cold', fuse_ceiling => 7, watermark_gating => 'none', statement_timeout => '9 s', fuse => 'on'"
    sales.run(f"CALL {CREATE[:-1]}, 'FULL', {options})")
    stored = "schedule, refresh_mode, tier, fuse_ceiling, watermark_gating, statement_timeout::text"
    assert sales.rows(f"SELECT {stored} FROM pgtrickle.pgt_stream_tables") == [
        ("1 day", "FULL", "cold", 7, "none", "00:00:09")
    ]


def test_with_initialize_false_nobody_waits(sales: Mirror) -> None:
    with sales.refresher():
        (notice,) = told(sales.db, f"CALL {CREATE[:-1]}, initialize => false)")
    assert "filled by the next tick" in notice


@pytest.mark.parametrize(
    "statements",
    [
        ("BEGIN", f"CALL {CREATE}"),
        (f"BEGIN; CALL {CREATE}; COMMIT",),
        (INSIDE, "SELECT inside()"),
    ],
    ids=["transaction", "one message", "function"],
)
def test_in_a_transaction_block_it_says_what_to_do_and_creates_nothing(
    every_db: Database, statements: tuple[str, ...]
) -> None:
    every_db.execute("CREATE TABLE sales (id int PRIMARY KEY, amount int)")
    session = every_db.connect()
    for statement in statements[:-1]:
        session.execute(statement.encode())
    with refused("2D000", "in autocommit mode", message="commits, which a transaction block or a function"):
        session.execute(statements[-1].encode())
    session.execute("ROLLBACK")
    assert every_db.value("SELECT count(*) FROM pgtrickle.pgt_stream_tables") == 0


def test_where_it_may_commit_it_creates_the_stream_table_on_every_server(every_db: Database) -> None:
    every_db.execute("CREATE TABLE sales (id int PRIMARY KEY, amount int)")
    for place, block in enumerate(
        (f"CALL {CREATE}", f"DO $$ BEGIN CALL {CREATE.replace('totals', 'others')}; END $$"), 1
    ):
        assert told(every_db, block) == ["no refresher runs: the request is served when one does"]
        assert every_db.value("SELECT count(*) FROM pgtrickle.pgt_refresh_requests") == place
    call = "CALL pgtrickle.create_and_load_stream_table(%s, %s, fuse_ceiling => %s)"
    every_db.execute(call, "given", "SELECT id FROM sales", 9)
    assert every_db.value("SELECT fuse_ceiling FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'given'") == 9


def test_a_first_load_that_fails_is_an_error_and_leaves_the_stream_table(sales: Mirror) -> None:
    sales.run("INSERT INTO sales VALUES (3, 0)")
    with sales.refresher(), refused("55000", "tries again", message="the refresh of inverse failed: SQLSTATE 22012"):
        sales.run("CALL pgtrickle.create_and_load_stream_table('inverse', 'SELECT 1 / amount AS y FROM sales')")
    assert sales.value("SELECT pgt_name FROM pgtrickle.pgt_stream_tables") == "inverse"


def test_a_query_that_is_refused_creates_nothing(sales: Mirror) -> None:
    with refused("0A000"):
        sales.run("CALL pgtrickle.create_and_load_stream_table('r', 'SELECT random() FROM sales')")
    assert sales.value("SELECT count(*) FROM pgtrickle.pgt_stream_tables") == 0


def test_nothing_that_lies_in_the_callers_path_runs_inside_it(sales: Mirror) -> None:
    """Who calls it, an administrator, has a schema of somebody else in front of pg_catalog."""
    mallory = sales.db.create_role("mallory")
    sales.run("CREATE SCHEMA trap AUTHORIZATION mallory")
    with sales.db.connect(user=mallory) as session:
        session.execute("CREATE TABLE trap.bitten (as_user text)")
        session.execute("GRANT ALL ON trap.bitten TO PUBLIC")
        bite = "LANGUAGE plpgsql AS $$ BEGIN INSERT INTO trap.bitten VALUES (current_user); RETURN NULL; END $$"
        for name, result in {
            "create_stream_table(text, text, text, text, boolean, text, text, text)": "integer",
            "refuse_transaction_block(text)": "void",
            "refresh_or_file(text, integer, interval)": "bigint",
            "current_setting(text)": "text",
            "quote_ident(text)": "text",
            "same(text, text)": "boolean",
            "same(boolean, boolean)": "boolean",
        }.items():
            session.execute(
                f"CREATE FUNCTION trap.{name} RETURNS {result} {bite}".replace(
                    "RETURN NULL;", "RETURN;" if result == "void" else "RETURN NULL;"
                ).encode()
            )
        for kind in ("text", "boolean"):
            session.execute(
                f"CREATE OPERATOR trap.= (LEFTARG = {kind}, RIGHTARG = {kind}, FUNCTION = trap.same)".encode()
            )
        session.execute("CREATE DOMAIN trap.int4 AS text CHECK (false)")
        session.execute("CREATE TYPE trap.interval AS ENUM ('never')")
    caller: psycopg.Connection = sales.db.connect(options="-c search_path=trap,pg_catalog,public")
    with sales.refresher():
        caller.execute(f"CALL {CREATE.replace('totals', 'public.totals')}".encode())
        assert sales.rows("TABLE totals") == [(30,)]
    assert sales.rows("TABLE trap.bitten") == []


def test_the_python_client_fills_it_at_once_when_asked_to(sales: Mirror) -> None:
    assert sales.client.create_stream_table("empty", "SELECT id FROM sales") is None
    filled = sales.client.create_stream_table("totals", "SELECT sum(amount) AS s FROM sales", initialize=True)
    assert filled is not None and filled.action == "FULL"
    assert (sales.rows("TABLE empty"), sales.rows("TABLE totals")) == ([], [(30,)])
