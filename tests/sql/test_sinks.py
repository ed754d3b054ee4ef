"""Sinks in SQL: a batch is claimed once and in order, and staging is for those who may load."""

from __future__ import annotations

import psycopg
import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.sql.checks import refused
from tests.waiting import wait_until_blocked

CLAIM = "SELECT pgtrickle.claim_sink_batch('orders', 'files', %s, %s)"
CREATE = "SELECT pgtrickle.create_sink_staging('orders', 'files', %s)"
DROP = "SELECT pgtrickle.drop_sink_staging('orders', 'files')"
STAGED = (
    "SELECT relname::text FROM pg_class WHERE relnamespace = 'pgtrickle_sinks'::regnamespace AND relname ~ '^sink_'"
)


@pytest.fixture
def orders(db: Database) -> Database:
    db.execute('CREATE TABLE orders (id int NOT NULL, "A b" numeric(10, 2), at timestamptz, gone int)')
    db.execute("ALTER TABLE orders DROP gone")
    return db


def test_a_batch_is_claimed_once_and_only_the_next_one_after_it(orders: Database) -> None:
    assert orders.value(CLAIM, "q", 7), "a checkpoint may be older than the sink"
    assert not orders.value(CLAIM, "q", 7)
    for batch in (6, 9):
        with refused("55000", "set back or replaced", "invalid_argument", f"batch {batch} of sink files"):
            orders.execute(CLAIM, "q", batch)
    assert orders.value(CLAIM, "q", 8)
    assert orders.execute("SELECT query_id, batch_id, committed_by FROM pgtrickle.pgt_sink_batches") == [
        ("q", 8, "postgres")
    ]


@pytest.mark.parametrize("batch", [0, 1])
def test_another_query_is_refused_also_where_its_batch_would_fit(orders: Database, batch: int) -> None:
    orders.execute(CLAIM, "q", 0)
    with refused("55000", "another name", "invalid_argument", "another streaming query"):
        orders.execute(CLAIM, "other", batch)
    assert orders.value(CLAIM, None, 1), "a query that is not known is judged by its batches alone"
    assert not orders.value(CLAIM, "q", 1)


def test_sinks_are_counted_by_table_and_name(orders: Database) -> None:
    orders.execute("CREATE TABLE lines (id int)")
    for source in ("orders", "lines"):
        for sink in ("files", "topic"):
            assert orders.value("SELECT pgtrickle.claim_sink_batch(%s, %s, 'q', 0)", source, sink)


def test_a_claim_waits_for_the_one_before_and_follows_its_end(orders: Database) -> None:
    orders.execute(CLAIM, "q", 0)
    for outcome, expected in (("ROLLBACK", True), ("COMMIT", False)):
        first, second = orders.connect(autocommit=False), orders.connect()
        first.execute(CLAIM, ("q", 1))
        claim = f"SELECT pgtrickle.claim_sink_batch('orders', 'files', 'q', 1) -- {outcome}"
        second.pgconn.send_query(claim.encode())
        wait_until_blocked(orders, f"-- {outcome}")
        first.execute(outcome)
        result = second.pgconn.get_result()
        assert result is not None
        assert result.get_value(0, 0) == (b"t" if expected else b"f")
        orders.execute("UPDATE pgtrickle.pgt_sink_batches SET batch_id = 0")


def test_a_loader_stages_and_drops_and_nobody_else_does(orders: Database) -> None:
    for role in ("loader", "other", "stranger"):
        orders.create_role(role)
    orders.execute("GRANT INSERT ON orders TO loader, other")
    loader, other, stranger = (orders.connect(user=role) for role in ("loader", "other", "stranger"))
    ((staging,),) = loader.execute(CREATE, (["at", "A b"],)).fetchall()
    assert loader.execute(f"SELECT * FROM pgtrickle_sinks.{staging}").fetchall() == []
    loader.execute(f"INSERT INTO pgtrickle_sinks.{staging} VALUES (now(), 1.005)")
    assert loader.execute(f'SELECT "A b"::text FROM pgtrickle_sinks.{staging}').fetchall() == [("1.01",)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        other.execute(f"SELECT * FROM pgtrickle_sinks.{staging}")
    for call in (CREATE.replace("%s", "ARRAY['id']"), DROP, CLAIM.replace("%s", "NULL", 1).replace("%s", "0")):
        with refused("42501", "GRANT INSERT ON public.orders TO stranger"):
            stranger.execute(call)
    assert orders.execute(STAGED) == [(staging,)]
    assert loader.execute(DROP).fetchone() == (1,)
    assert orders.execute(STAGED) == []


def test_what_a_task_still_writes_to_is_left_for_the_next_batch(orders: Database) -> None:
    busy = orders.connect(autocommit=False)
    ((staging,),) = orders.execute(CREATE, ["id"])
    orders.execute(CREATE, ["id"])
    busy.execute(f"INSERT INTO pgtrickle_sinks.{staging} VALUES (1)")
    assert orders.value(DROP) == 1
    assert orders.execute(STAGED) == [(staging,)]
    busy.rollback()
    assert orders.value(DROP) == 1


def test_wrong_arguments_are_refused(orders: Database) -> None:
    for columns in (["id", "nothing"], ["gone"], ["........pg.dropped.4........"]):
        with refused("22023", "no such column", "invalid_argument"):
            orders.execute(CREATE, columns)
    with refused("22023", "a name", "invalid_argument"):
        orders.execute("SELECT pgtrickle.claim_sink_batch('orders', '', NULL, 0)")
    for batch, state in ((-1, "22023"), (None, "22004")):
        with refused(state, "from 0", "invalid_argument"):
            orders.execute(CLAIM, "q", batch)
    assert orders.execute("SELECT * FROM pgtrickle.pgt_sink_batches") == []


def test_a_batch_that_comes_again_must_have_the_rows_it_had(orders: Database) -> None:
    claim = "SELECT pgtrickle.claim_sink_batch('orders', 'files', 'q', 0, %s, %s)"
    assert orders.value(claim, 2, 77)
    assert not orders.value(claim, 2, 77)
    for rows, digest in ((3, 77), (2, 78)):
        with refused("55000", "pgtrickle.drop_sink('public.orders', 'files')", "invalid_argument", "other rows"):
            orders.execute(claim, rows, digest)
    assert not orders.value(claim, None, None), "what is not known is not compared"


def test_a_dropped_sink_begins_anew(orders: Database) -> None:
    for role in ("loader", "stranger"):
        orders.create_role(role)
    orders.execute("GRANT INSERT ON orders TO loader")
    loader, stranger = (orders.connect(user=role) for role in ("loader", "stranger"))
    loader.execute(CREATE, (["id"],))
    assert loader.execute(CLAIM, ("q", 7)).fetchone() == (True,)
    drop = "SELECT pgtrickle.drop_sink('orders', %s)"
    with refused("42501", "GRANT INSERT ON public.orders TO stranger"):
        stranger.execute(drop, ("files",))
    for name, state in (("nothing", "22023"), (None, "22004")):
        with refused(state, "no such sink", "invalid_argument"):
            loader.execute(drop, (name,))
    loader.execute(drop, ("files",))
    assert orders.execute(STAGED) == []
    assert loader.execute(CLAIM, ("other", 3)).fetchone() == (True,)


def test_a_claim_that_waited_for_a_sink_to_be_dropped_is_refused(orders: Database) -> None:
    orders.execute(CLAIM, "q", 0)
    first, second = orders.connect(autocommit=False), orders.connect()
    first.execute("SELECT pgtrickle.drop_sink('orders', 'files')")
    second.pgconn.send_query(b"SELECT pgtrickle.claim_sink_batch('orders', 'files', 'q', 1) -- waits")
    wait_until_blocked(orders, "-- waits")
    first.commit()
    result = second.pgconn.get_result()
    assert result is not None
    assert b"was dropped meanwhile" in result.error_message
    assert orders.execute("SELECT * FROM pgtrickle.pgt_sink_batches") == []


def test_a_tick_forgets_the_sinks_of_dropped_tables_and_what_they_staged(orders: Database) -> None:
    orders.execute("CREATE TABLE gone (id int)")
    for source in ("orders", "gone"):
        orders.execute("SELECT pgtrickle.create_sink_staging(%s, 'files', ARRAY['id'])", source)
    ((kept,),) = orders.execute(f"{STAGED} AND relname ~ '^sink_1_'")
    orders.execute("DROP TABLE gone")
    with local_client(orders.dsn) as (client, _):
        client.tick()
    assert orders.execute("SELECT source_relid::text FROM pgtrickle.pgt_sink_batches") == [("orders",)]
    assert orders.execute(STAGED) == [(kept,)]


def test_no_other_role_keeps_staging_tables_or_change_buffers_from_being_dropped(orders: Database) -> None:
    orders.execute("SELECT pgtrickle.create_stream_table('ids', 'SELECT id FROM orders')")
    ((buffer,),) = orders.execute("SELECT buffer FROM pgtrickle.pgt_change_tracking")
    ((staging,),) = orders.execute(CREATE, ["id"])
    orders.create_role("stranger")
    stranger = orders.connect(user="stranger")
    for made in ("TEMP TABLE pin (c {})", "TEMP VIEW seen AS SELECT (NULL::{}) IS NULL AS c"):
        stranger.execute(f"CREATE {made.format(f'pgtrickle_sinks.{staging}')}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            stranger.execute(f"CREATE {made.format(buffer)}")
    assert orders.value(DROP) == 1
    orders.execute("SELECT pgtrickle.drop_stream_table('ids')")
