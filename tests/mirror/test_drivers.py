"""Calls with parameters work from every driver, also where the driver has the server say which types they have."""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg
import pytest

from tests.conftest import Database
from tests.mirror.drivers import DRIVERS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
INFERRED = {
    "advance_watermark($1, $2)": "{text,\"timestamp with time zone\"}",
    "advance_watermark(source => $1, watermark => $2)": "{text,\"timestamp with time zone\"}",
    "advance_batch($1, $2)": "{text,bigint}",
    "gate_source($1)": "{text}",
    "gate_source($1, $2)": "{text,text}",
    "ungate_source($1)": "{text}",
    "mark_idle($1)": "{text}",
    "reset_watermark($1)": "{text}",
    "set_source_limits($1, $2)": "{text,interval}",
    "watermark_history($1)": "{text}",
    "watermark_of($1)": "{text}",
    "capture_problem($1)": "{text}",
    "repair_capture($1)": "{text}",
    "grant_loader($1, $2)": "{text,text}",
    "revoke_loader($1, $2)": "{text,text}",
    "drop_watermark_group($1)": "{text}",
    "create_refresh_group($1, $2, $3)": "{text,text[],text}",
    "refresh_stream_table($1)": "{text}",
    "create_stream_table($1, $2)": "{text,text}",
}  # fmt: skip


@pytest.fixture
def sources(every_db: Database) -> Database:
    """A schema off the search path with a table of event times, and a table of batches on it."""
    every_db.execute(
        'CREATE SCHEMA shop; CREATE TABLE shop."order Lines" (id integer); CREATE TABLE orders (id integer)'
    )
    return every_db


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_driver_advances_gates_and_marks_a_source_by_its_name(sources: Database, driver: str) -> None:
    def call(function: str, *arguments: object) -> None:
        DRIVERS[driver](sources.dsn, function, arguments)

    call("advance_watermark", 'shop."order Lines"', NOON)
    call("advance_batch", "orders", 47)
    call("gate_source", "orders", "a load")
    marks = "SELECT source_relid::regclass::text, watermark, batch FROM pgtrickle.pgt_watermarks ORDER BY 1"
    assert sources.execute(marks) == [("orders", None, 47), ('shop."order Lines"', NOON, None)]
    gates = "SELECT source_relid::text, reason, ungated_at IS NULL FROM pgtrickle.pgt_source_gates"
    assert sources.execute(gates) == [("orders", "a load", True)]
    call("ungate_source", "orders")
    assert sources.execute(gates) == [("orders", "a load", False)]
    call("mark_idle", "orders")
    assert sources.value("SELECT count(marked_idle_at) FROM pgtrickle.pgt_watermarks") == 1


@pytest.mark.parametrize("call", INFERRED)
def test_the_server_infers_the_types_that_the_extension_has(sources: Database, call: str) -> None:
    connection = sources.connect(autocommit=False)
    connection.execute(f"PREPARE called AS SELECT pgtrickle.{call}".encode())
    inferred = "SELECT parameter_types::text FROM pg_prepared_statements WHERE name = 'called'"
    assert connection.execute(inferred.encode()).fetchone() == (INFERRED[call],)


@pytest.mark.parametrize(
    "source",
    [
        "'orders'",
        "'orders'::text",
        "'orders'::varchar",
        "'orders'::name",
        "'orders'::regclass",
        "'orders'::regclass::oid",
    ],
)
@pytest.mark.parametrize(
    "watermark", ["'2026-03-01 12:00Z'", "timestamptz '2026-03-01 12:00Z'", "timestamp '2026-03-01 12:00'"]
)
def test_names_numbers_and_quoted_literals_still_mean_a_source(sources: Database, source: str, watermark: str) -> None:
    sources.execute("SET TimeZone = 'UTC'")
    for call in (f"{source}, {watermark}", f"watermark => {watermark}, source => {source}"):
        sources.execute(f"SELECT pgtrickle.advance_watermark({call})")
        assert sources.execute("SELECT watermark FROM pgtrickle.pgt_watermarks") == [(NOON,)]


def test_a_name_means_what_it_means_on_the_search_path_of_its_caller(sources: Database) -> None:
    sources.execute("CREATE TABLE shop.orders (id integer)")
    with sources.connect(options="-c search_path=shop") as loader:
        loader.execute("SELECT pgtrickle.advance_watermark('orders', '2026-03-01 12:00Z')")
        with pytest.raises(psycopg.errors.UndefinedTable, match="relation 'lines' does not exist"):
            loader.execute("SELECT pgtrickle.advance_watermark('lines', '2026-03-01 12:00Z')")
    assert sources.value("SELECT source_relid::regclass::text FROM pgtrickle.pgt_watermarks") == "shop.orders"


@pytest.mark.parametrize("source", ["'orders'", "'orders'::text", "'orders'::varchar", "'orders'::regclass"])
def test_what_asks_about_a_source_takes_its_name_in_any_type(sources: Database, source: str) -> None:
    sources.execute("SELECT pgtrickle.create_stream_table('ids', 'SELECT id FROM orders')")
    sources.execute("SELECT pgtrickle.advance_watermark('orders', '2026-03-01 12:00Z')")
    assert sources.execute(f"SELECT watermark FROM pgtrickle.watermark_history({source})") == [(NOON,)]
    assert sources.value(f"SELECT pgtrickle.watermark_of({source})") == NOON
    assert sources.value(f"SELECT pgtrickle.capture_problem({source})") is None
    sources.execute(f"SELECT pgtrickle.repair_capture({source})")
    role = sources.create_role("orchestrator")
    loaders = "SELECT source_relid::text, loader::text FROM pgtrickle.pgt_loaders"
    for typed in (f"'{role}'", f"'{role}'::text", f"'{role}'::name"):
        sources.execute(f"SELECT pgtrickle.grant_loader({source}, {typed})")
        assert sources.execute(loaders) == [("orders", role)]
        sources.execute(f"SELECT pgtrickle.revoke_loader({source}, {typed})")
        assert sources.execute(loaders) == []
