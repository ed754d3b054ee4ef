"""AUTO tries Spark where it runs already, and keeps to the engine that was faster."""

from collections.abc import Iterator

import pytest

import pytrickle.plan.engines
import pytrickle.refresh.remembered
from pytrickle.client.client import Client
from pytrickle.plan.auto import WORTH_ASKING
from tests.conftest import Database
from tests.equivalence.local_engine import LocalEngine, local_client
from tests.equivalence.oracle import differences

QUERY = "SELECT b.name, count(*) AS n, sum(a.v) AS s FROM a JOIN b USING (k) GROUP BY b.name"
TRIED = "engine: spark (PostgreSQL took 2.0 s for about as many changes, which Spark was never tried for"
FASTER = "engine: spark (for about as many changes PostgreSQL took 2.0 s, Spark 1.0 s"
Slow = tuple[Client, LocalEngine]
TOOK = """
INSERT INTO pgtrickle.pgt_refresh_history
    (pgt_id, action, status, initiated_by, delta_rows, started_at, finished_at, engine)
SELECT pgt_id, 'DIFFERENTIAL', 'COMPLETED', 'MANUAL', 40000, now() - %s * interval '1 s', now(), %s
FROM pgtrickle.pgt_stream_tables
"""


@pytest.fixture
def slow(db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    """A client of a join whose many changes took PostgreSQL two seconds, and that are many again."""
    monkeypatch.setattr(pytrickle.plan.engines, "TRIED_ROWS", WORTH_ASKING)
    # Every refresh counts as slow, whatever this machine takes, so that the history is asked before the next one.
    monkeypatch.setattr(pytrickle.refresh.remembered, "SLOW", 0.0)
    db.execute("CREATE TABLE a (id int PRIMARY KEY, k int, v int)")
    db.execute("CREATE TABLE b (k int PRIMARY KEY, name text)")
    db.execute("INSERT INTO a SELECT i, i % 50, i % 7 FROM generate_series(1, 20000) AS i")
    db.execute("INSERT INTO b SELECT i, 'name ' || i FROM generate_series(0, 49) AS i")
    with local_client(db.dsn) as (client, engine):
        client.create_stream_table("joined", QUERY, initialize=True, refresh_mode="DIFFERENTIAL")
        db.execute(TOOK, 2.0, "postgres")
        db.execute("UPDATE a SET v = v + 1")
        yield client, engine


def test_spark_is_tried_once_where_it_runs_and_postgresql_was_slow(slow: Slow, db: Database) -> None:
    client, engine = slow
    assert TRIED not in client.explain("joined").text
    engine.running = True
    assert TRIED in client.explain("joined").text
    (result,) = client.tick()
    assert (result.action, result.engine) == ("DIFFERENTIAL", "spark")
    assert not differences(db.connect(), "joined", QUERY, True)
    # As if it had failed: nothing is known of it.
    db.execute("DELETE FROM pgtrickle.pgt_refresh_history WHERE engine = 'spark'")
    db.execute("UPDATE a SET v = v + 1")
    (result,) = client.tick()
    assert (result.action, result.engine) == ("DIFFERENTIAL", "postgres")


def test_the_engine_that_was_faster_is_kept_to_in_any_mode(slow: Slow, db: Database) -> None:
    client, _ = slow
    db.execute(TOOK, 1.0, "spark")
    assert (
        "engine: spark (for about as many changes PostgreSQL took 2.0 s, Spark 1.0 s" in client.explain("joined").text
    )
