"""Poolers: through a session of one's own everything works, through a shared one what loaders call, else a refusal."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

import pytrickle
from pytrickle.errors import ConfigError
from pytrickle.watermarks import event_time, load
from tests.commands import commands
from tests.conftest import Database
from tests.integrations.poolers import pgbouncer
from tests.repeats import first

SEEN = "SELECT current_setting('search_path'), current_setting('extra_float_digits')"
BUSY = "server_round_robin = 1"


@pytest.fixture
def orders(db: Database) -> Database:
    db.execute("CREATE TABLE orders (id integer PRIMARY KEY, at timestamptz)")
    return db


@pytest.mark.parametrize(
    ("mode", "order"), first(1, [("transaction", ""), ("transaction", BUSY), ("statement", ""), ("statement", BUSY)])
)
def test_a_pooler_that_shares_sessions_is_refused_and_nobody_gets_our_settings(
    orders: Database, mode: str, order: str
) -> None:
    with pgbouncer(orders.dsn, mode, order) as dsn, psycopg.connect(dsn, autocommit=True) as reader:
        before = reader.execute(SEEN).fetchall()
        for _ in range(5):
            with pytest.raises(ConfigError, match="A pooler before the server") as refused:
                pytrickle.connect(dsn)
            assert "pool_mode = session" in str(refused.value.hint)
            assert reader.execute(SEEN).fetchall() == before
        shown = commands(dsn)("status")
        assert shown.exit_code == 1 and "A pooler before the server" in shown.stderr


def test_everything_works_in_sessions_of_ones_own(orders: Database) -> None:
    with pgbouncer(orders.dsn, "session") as dsn, pytrickle.connect(dsn, engine="postgres") as client:
        client.create_stream_table("counted", "SELECT count(*) AS n FROM orders")
        for number in range(3):
            orders.execute("INSERT INTO orders VALUES (%s, now())", number)
            assert {result.error for result in client.tick()} == {None}
        assert client.verify("counted").matches
        assert orders.execute("TABLE counted") == [(3,)]


def test_a_session_pool_with_room_for_one_serves_what_needs_one(orders: Database) -> None:
    with pgbouncer(orders.dsn, "session", "default_pool_size = 1") as dsn:
        assert commands(dsn)("status").exit_code == 0


def test_loaders_and_readers_may_share_sessions(orders: Database) -> None:
    orders.execute("SELECT pgtrickle.create_stream_table('counted', 'SELECT count(*) AS n FROM orders')")
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    generator = event_time(timedelta(0))
    with (
        pgbouncer(orders.dsn, "transaction") as dsn,
        psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as loader,
        psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as reader,
        pytrickle.connect(orders.dsn, engine="postgres") as client,
    ):
        for number in range(10):
            at = noon + timedelta(hours=number)
            with loader.transaction():
                loader.execute("INSERT INTO orders VALUES (%s, %s)", (number, at))
                # Meanwhile the session of the last transaction is the reader's.
                assert reader.execute("TABLE counted").fetchall() == ([(2 * number,)] if number else [])
                loader.execute("SELECT pgtrickle.advance_watermark('orders', %s)", (at,))
            with load(loader, "orders", event_time=1, generator=generator) as loading:
                late = at + timedelta(minutes=1)
                loader.cursor().executemany("INSERT INTO orders VALUES (%s, %s)", loading.rows([(100 + number, late)]))
            client.tick()
            assert orders.value("SELECT watermark FROM pgtrickle.watermarks()") == late
        assert client.verify("counted").matches
