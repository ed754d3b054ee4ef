"""Stream tables over stream tables: the upper one shows no mixture and claims no more than those below."""

from collections.abc import Iterator

import pytest

from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.sql.checks import create, decide
from tests.sql.loaders import advance, pipeline

BOTH = "SELECT a.id FROM a JOIN b USING (id)"


@pytest.fixture
def client(db: Database) -> Iterator[Client]:
    """A held-back table over each of two sources of a group, and one over both."""
    pipeline(db)
    create(db, "SELECT id FROM orders", "a", watermark_gating="hold_back")
    create(db, "SELECT id FROM lines", "b", watermark_gating="hold_back")
    create(db, BOTH, "top", watermark_gating="hold_back")
    with local_client(db.dsn) as (found, _):
        yield found


def load(db: Database, row: int, **watermarks: str) -> None:
    for source, at in watermarks.items():
        db.execute(f"INSERT INTO {source} VALUES (%s)", row)
        advance(db, **{source: at})


def test_the_upper_table_waits_while_one_below_stays_where_it_is(db: Database, client: Client) -> None:
    load(db, 1, orders="12:00", lines="12:00")
    client.tick()
    load(db, 2, orders="12:05")
    load(db, 3, orders="12:30")
    db.execute("SELECT pgtrickle.mark_idle('lines')")
    client.tick()
    load(db, 2, lines="12:05")
    client.tick()
    assert db.execute("SELECT id FROM b ORDER BY id") == [(1,), (2,)]
    decision = decide(db, "top")
    assert decision["decision"] == "waiting"
    assert "stays where it is until a watermark of public.orders covers what it shows" in decision["reason"]
    assert db.execute("SELECT id FROM top") == [(1,)]
    load(db, 3, lines="12:30")
    client.tick()
    assert db.execute("SELECT id FROM top ORDER BY id") == [(1,), (2,), (3,)]


def test_tables_of_one_chain_need_the_same_tolerance(db: Database, client: Client) -> None:
    load(db, 1, orders="12:00", lines="12:00")
    client.tick()
    for name in ("a", "b", "top"):
        db.execute("SELECT pgtrickle.alter_stream_table(%s, watermark_tolerance => '5 minutes')", name)
        expected = "waiting" if name != "top" else "run"
        assert decide(db, "top")["decision"] == expected
    db.execute("SELECT pgtrickle.alter_watermark_group('pipeline', tolerance => '5 minutes')")
    db.execute("SELECT pgtrickle.alter_stream_table('top', reset => ARRAY['watermark_tolerance'])")
    assert decide(db, "top")["decision"] == "run", "the same by another way"


def test_a_table_waits_over_one_that_shows_more_since_its_source_was_adopted(db: Database, client: Client) -> None:
    load(db, 1, orders="12:00", lines="12:00")
    db.execute("SELECT pgtrickle.drop_stream_table('a', cascade => true)")
    db.execute("DROP TABLE orders; CREATE TABLE orders (id integer)")
    create(db, "SELECT id FROM orders", "a", watermark_gating="none")
    create(db, BOTH, "top", watermark_gating="hold_back")
    db.execute("SELECT pgtrickle.adopt_source('orders')")
    load(db, 2, orders="12:05", lines="12:05")
    decision = decide(db, "top")
    assert (decision["decision"], "reads public.a, which shows more" in decision["reason"]) == ("waiting", True)
    db.execute("SELECT pgtrickle.alter_stream_table('a', watermark_gating => 'hold_back')")
    assert decide(db, "top")["decision"] == "run"
    client.tick()
    assert db.execute("SELECT id FROM top") == [(2,)]


def test_a_gate_claims_no_more_than_a_held_table_below_shows(db: Database, client: Client) -> None:
    create(db, "SELECT id FROM top", "gated", watermark_gating="gate", watermark_tolerance="1 hour")
    load(db, 1, orders="12:00", lines="12:00")
    client.tick()
    load(db, 2, orders="12:05")
    load(db, 2, lines="12:03")
    decision = decide(db, "gated")
    assert (decision["decision"], decision["effective_watermark"]) == ("run", "12:00")
    load(db, 3, lines="12:05")
    assert decide(db, "gated")["effective_watermark"] == "12:05"
