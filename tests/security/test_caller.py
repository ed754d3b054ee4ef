"""Whoever calls is the role that PostgreSQL names: nobody acts with the rights of whoever is logged in."""

import psycopg
import pytest

from tests.conftest import Database
from tests.repeats import first
from tests.security.roles import House, Session, ask
from tests.sql.checks import refused

ADVANCE = "SELECT pgtrickle.advance_watermark('public.orders', '2026-03-01 12:00Z')"
WATERMARKS = "SELECT source, advanced_by FROM pgtrickle.watermarks()"
# What a table owner may have run by whoever analyzes the table, or inserts into it.
TRAPS = {
    "advancing": ("PERFORM pgtrickle.advance_watermark('public.orders', '2026-03-01 12:00Z');", WATERMARKS),
    "gating": ("PERFORM pgtrickle.gate_source('public.orders');", "SELECT source FROM pgtrickle.source_gates()"),
    "marking idle": (
        "PERFORM pgtrickle.mark_idle('public.orders');",
        "SELECT source_name FROM pgtrickle.pgt_watermarks WHERE marked_idle_at IS NOT NULL",
    ),
    "forging the caller": (
        "INSERT INTO pgtrickle.pgt_calls (caller, call, source, arguments) VALUES "
        "('etl', 'gate_source', 'public.orders', '{}');",
        "SELECT source FROM pgtrickle.source_gates()",
    ),
    "reading the ledger": (
        "INSERT INTO mallory.seen SELECT row_data::text FROM pgtrickle.late_rows();",
        "SELECT text FROM mallory.seen",
    ),
    "reading the ledger's view": (
        "INSERT INTO mallory.seen SELECT row_data::text FROM pgtrickle.pgt_readable_late_rows;",
        "SELECT text FROM mallory.seen",
    ),
}


def trap(house: House, statement: str) -> Session:
    """Let mallory have a table with an index that calls a function of hers, which tries a statement."""
    mallory = house.session("mallory")
    mallory.execute("CREATE TABLE mallory.seen (text text)")
    mallory.execute("GRANT SELECT ON mallory.seen TO PUBLIC; GRANT USAGE ON SCHEMA mallory TO PUBLIC")
    mallory.execute("CREATE TABLE mallory.bait (id integer)")
    mallory.execute(
        "CREATE FUNCTION mallory.bite(id integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS "
        "$$ BEGIN RETURN id; END $$"
    )
    mallory.execute("CREATE INDEX ON mallory.bait (mallory.bite(id))")
    mallory.execute("INSERT INTO mallory.bait SELECT generate_series(1, 10)")
    mallory.execute("CREATE TABLE mallory.bites (as_role text)")
    mallory.execute(
        f"CREATE FUNCTION mallory.act() RETURNS void LANGUAGE plpgsql AS $$ BEGIN "
        f"BEGIN {statement} EXCEPTION WHEN OTHERS THEN NULL; END; "
        f"INSERT INTO mallory.bites VALUES (current_user); END $$".encode()
    )
    mallory.execute(
        "CREATE OR REPLACE FUNCTION mallory.bite(id integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS "
        "$$ BEGIN PERFORM mallory.act(); RETURN id; END $$"
    )
    return mallory


@pytest.mark.parametrize("attack", first(3, TRAPS))
def test_an_index_expression_gains_nothing_from_an_analyze_of_the_superuser(house: House, attack: str) -> None:
    statement, traces = TRAPS[attack]
    ask(house.etl, "SELECT pgtrickle.set_event_time('orders', 'at', too_late => '1 hour')")
    ask(house.etl, "SELECT pgtrickle.advance_watermark('orders', '2026-03-01 10:00Z')")
    ask(house.etl, "INSERT INTO orders VALUES (1, 12345, '2026-03-01 08:00Z')")
    trap(house, statement)
    before = house.db.execute(traces)
    house.db.execute("ANALYZE mallory.bait")
    assert house.db.execute("SELECT DISTINCT as_role FROM mallory.bites") == [("mallory",)], "the trap was not sprung"
    assert house.db.execute(traces) == before


def test_a_loader_that_calls_a_function_of_another_role_lends_it_no_rights(house: House) -> None:
    loader, mallory = house.session("loader", "INSERT ON orders"), house.session("mallory")
    mallory.execute(
        "CREATE FUNCTION mallory.convenient() RETURNS void LANGUAGE sql SECURITY DEFINER BEGIN ATOMIC "
        "SELECT pgtrickle.advance_watermark('public.orders', timestamptz '2026-03-01 12:00Z'); END"
    )
    mallory.execute("GRANT USAGE ON SCHEMA mallory TO PUBLIC")
    with refused("42501", "GRANT INSERT ON public.orders TO mallory"):
        loader.execute("SELECT mallory.convenient()")
    assert house.db.execute(WATERMARKS) == []


def test_a_wrapper_of_a_loader_works_for_whoever_may_call_it(house: House) -> None:
    loader, orchestrator = house.session("loader", "INSERT ON orders"), house.session("orchestrator")
    loader.execute(
        "CREATE FUNCTION loader.done() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS "
        "$$ BEGIN PERFORM pgtrickle.advance_watermark('public.orders', '2026-03-01 12:00Z'); END $$"
    )
    loader.execute("GRANT USAGE ON SCHEMA loader TO orchestrator")
    orchestrator.execute("SELECT loader.done()")
    assert house.db.execute(WATERMARKS) == [("public.orders", "loader")]


def test_a_session_that_sets_its_role_is_that_role(house: House) -> None:
    house.session("loader", "INSERT ON orders")
    both = house.db.connect()
    both.execute("SET ROLE loader")
    both.execute(ADVANCE)
    assert house.db.execute(WATERMARKS) == [("public.orders", "loader")]
    house.session("stranger")
    both.execute("SET ROLE stranger")
    with refused("42501", "GRANT INSERT ON public.orders TO stranger"):
        both.execute(ADVANCE.replace("12:00", "13:00"))


def test_a_loader_needs_nothing_but_insert_on_its_table(house: House) -> None:
    loader = house.session("loader", "INSERT ON orders")
    for call in (
        "advance_watermark('orders', '2026-03-01 12:00Z')",
        "advance_watermark('orders', now())",
        "gate_source('orders', 'a load')",
        "ungate_source('orders')",
        "mark_idle('orders')",
        "create_sink_staging('orders', 'files', ARRAY['id'])",
        "claim_sink_batch('orders', 'files', 'q', 0)",
        "drop_sink_staging('orders', 'files')",
        "drop_sink('orders', 'files')",
    ):
        loader.execute(f"SELECT pgtrickle.{call}".encode())
    assert house.db.value("SELECT count(*) FROM pgtrickle.pgt_calls") == 0


def test_a_load_with_triggers_switched_off_advances_as_well(house: House) -> None:
    session = house.db.connect()
    session.execute("SET session_replication_role = replica")
    session.execute(ADVANCE)
    assert house.db.execute(WATERMARKS) == [("public.orders", "postgres")]


def test_the_caller_cannot_be_written(house: House) -> None:
    mallory = house.session("mallory")
    for columns, values in (
        ("caller, call, source", "'etl', 'gate_source', 'orders'"),
        ("caller, call", "DEFAULT, 'x'"),
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            mallory.execute(f"INSERT INTO pgtrickle.pgt_calls ({columns}) VALUES ({values})".encode())
    with mallory.cursor() as cursor, pytest.raises(psycopg.errors.InsufficientPrivilege):  # noqa: SIM117
        with cursor.copy("COPY pgtrickle.pgt_calls (caller, call) FROM STDIN") as copy:
            copy.write_row(("etl", "gate_source"))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        mallory.execute("SELECT * FROM pgtrickle.pgt_calls")
    with pytest.raises(psycopg.errors.InsufficientPrivilege), mallory.transaction():
        mallory.execute("LOCK TABLE pgtrickle.pgt_calls IN ROW EXCLUSIVE MODE")


def test_a_row_that_is_copied_into_the_calls_is_judged_like_a_call(house: House) -> None:
    mallory = house.session("mallory")
    with refused("42501", "GRANT INSERT ON public.orders TO mallory"), mallory.cursor() as cursor:  # noqa: SIM117
        with cursor.copy("COPY pgtrickle.pgt_calls (call, source) FROM STDIN") as copy:
            copy.write_row(("gate_source", "public.orders"))


def test_whoever_reads_a_view_of_another_role_sees_no_more_than_they_may(house: House) -> None:
    ask(house.etl, "SELECT pgtrickle.set_event_time('orders', 'at')")
    ask(house.etl, "SELECT pgtrickle.advance_watermark('orders', '2026-03-01 10:00Z')")
    ask(house.etl, "INSERT INTO orders VALUES (1, 12345, '2026-03-01 08:00Z')")
    analyst, reader = house.session("analyst", "SELECT ON orders"), house.session("reader")
    analyst.execute("CREATE VIEW analyst.late AS SELECT * FROM pgtrickle.late_rows()")
    analyst.execute("GRANT USAGE ON SCHEMA analyst TO reader; GRANT SELECT ON analyst.late TO reader")
    assert len(ask(analyst, "SELECT * FROM analyst.late")) == 1
    assert ask(reader, "SELECT * FROM analyst.late") == []


def test_everybody_may_look_at_states_in_a_read_only_transaction(db: Database) -> None:
    db.create_role("monitor")
    monitor = db.connect(user="monitor", options="-c default_transaction_read_only=on")
    for function in ("pgt_status", "refresh_history", "late_rows", "late_changes", "watermarks"):
        assert ask(monitor, f"SELECT * FROM pgtrickle.{function}()") == []
