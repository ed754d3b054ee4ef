"""A refresh ends when one of its statements runs for too long, whoever runs it, and keeps nothing else waiting."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import pytrickle
from pytrickle.errors import ConfigError, InvalidArgument, StatementTimeout
from tests.acceptance.conftest import Shop, assert_explained
from tests.equivalence.local_engine import local_client
from tests.repeats import first

# Waits for as long as another session holds the lock: a query without end, until the test ends it.
ENDLESS = """
CREATE FUNCTION endless(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(CASE WHEN n > 100 THEN 3600 ELSE 0 END);
    RETURN n;
END
$$
"""
# It reads all columns: of a row that came and went nothing is left out then.
QUERY = "SELECT id, customer, endless(amount) AS amount FROM orders"
SLOW_WRITE = """
CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3600); RETURN NULL; END $$;
CREATE TRIGGER sleep AFTER INSERT ON report FOR EACH STATEMENT EXECUTE FUNCTION sleep();
ALTER TABLE report ENABLE ALWAYS TRIGGER sleep
"""
STATE = "SELECT status, last_error, consecutive_failures FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'report'"
SENTENCE = "A statement ran for longer than statement_timeout allows."


@pytest.fixture
def shop(spark_shop: Shop) -> Shop:
    """Spark is what these tests are about, so every run plays them through it."""
    return spark_shop


def results(pt: pytrickle.Client) -> dict[str, pytrickle.RefreshResult]:
    return {result.stream_table.partition(".")[2]: result for result in pt.tick()}


def endless(shop: Shop, **options: Any) -> None:
    """Fill `report` and `apart`, then add an order over which the query of `report` does not end."""
    shop.db.execute(ENDLESS)
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    shop.pt.create_stream_table("report", QUERY, **options)
    shop.pt.create_stream_table("apart", "SELECT id FROM orders")
    shop.tick()
    shop.db.execute("INSERT INTO orders VALUES (2, 1, 1000)")


@pytest.mark.parametrize("direct_delta_rows", first(1, (1_000, 0)), ids=["direct", "spark"])
def test_a_query_without_end_fails_and_the_others_go_on(
    shop: Shop, connect: Callable[..., pytrickle.Client], direct_delta_rows: int
) -> None:
    endless(shop, statement_timeout="1 s")
    pt = connect(direct_delta_rows=direct_delta_rows)
    found = results(pt)
    assert (found["report"].action, found["report"].error) == ("FAILED", SENTENCE)
    assert found["apart"].action == "DIFFERENTIAL"
    assert shop.db.execute(STATE) == [("ERROR", SENTENCE, 1)]
    with pytest.raises(StatementTimeout) as timeout:
        pt.refresh("report")
    assert_explained(timeout.value)
    assert "statement_timeout" in (timeout.value.hint or "")
    assert not timeout.value.retryable
    shop.db.execute("DELETE FROM orders WHERE id = 2")
    shop.db.execute("SELECT pgtrickle.resume_stream_table('report')")
    assert results(pt)["report"].error == SENTENCE, "a delta evaluates what came and went as well"
    assert results(pt)["report"].action == "REINITIALIZE"
    assert shop.rows("report") == {(1, 1, 10)}
    shop.assert_verified()


def test_what_is_written_for_too_long_fails_too(local_shop: Shop) -> None:
    endless(local_shop, statement_timeout=timedelta(milliseconds=300))
    local_shop.db.execute("UPDATE orders SET amount = 5 WHERE id = 2")
    local_shop.db.execute(SLOW_WRITE)
    found = results(local_shop.pt)
    assert (found["report"].action, found["report"].error) == ("FAILED", SENTENCE)
    assert found["apart"].action == "DIFFERENTIAL"
    local_shop.db.execute("DROP TRIGGER sleep ON report")
    assert results(local_shop.pt)["report"].error is None
    local_shop.assert_verified()


def test_the_limit_of_one_member_of_a_unit_is_not_that_of_another(local_shop: Shop) -> None:
    local_shop.pt.create_stream_table("one", "SELECT id, amount FROM orders", statement_timeout="100 ms")
    local_shop.pt.create_stream_table("two", "SELECT id, customer FROM orders")
    local_shop.db.execute("CREATE FUNCTION slept() RETURNS text STABLE LANGUAGE sql AS 'SELECT pg_sleep(0.3)::text'")
    slow = "SELECT id, amount, customer, slept() FROM one JOIN two USING (id)"
    local_shop.pt.create_stream_table("pair", slow)
    local_shop.tick()
    local_shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    assert {result.error for result in results(local_shop.pt).values()} == {None}
    assert local_shop.db.value("SELECT count(DISTINCT refresh_xid) FROM pgtrickle.pgt_stream_tables") == 1


def test_the_setting_is_the_limit_of_those_without_one_of_their_own(local_shop: Shop) -> None:
    endless(local_shop)
    local_shop.pt.alter_stream_table("report", statement_timeout=timedelta(days=1))
    local_shop.pt.alter_stream_table("report", reset=["statement_timeout"])
    with local_client(local_shop.db.dsn, statement_timeout=0.5) as (pt, _):
        assert results(pt)["report"].error == SENTENCE
    with pytest.raises(ConfigError):
        pytrickle.Settings(statement_timeout=timedelta(0))


def test_the_servers_own_limit_holds_where_nothing_else_is_said(local_shop: Shop) -> None:
    endless(local_shop)
    local_shop.db.execute(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = 2000', current_database()); END $$"
    )
    with local_client(local_shop.db.dsn) as (pt, _):
        assert results(pt)["report"].error == SENTENCE


@pytest.mark.parametrize("value", ["0", "-1 s", "25 days"])
def test_a_limit_is_a_time_that_postgresql_can_count(local_shop: Shop, value: str) -> None:
    with pytest.raises(InvalidArgument, match="statement_timeout"):
        local_shop.pt.create_stream_table("report", "SELECT id FROM orders", statement_timeout=value)
    local_shop.pt.create_stream_table("report", "SELECT id FROM orders", statement_timeout="5 s")
    with pytest.raises(InvalidArgument, match="statement_timeout"):
        local_shop.pt.alter_stream_table("report", statement_timeout=value)
    limit = "SELECT statement_timeout FROM pgtrickle.pgt_stream_tables"
    assert local_shop.db.value(limit) == timedelta(seconds=5)
