"""Held-back tables over held-back ones that are refreshed less often."""

from tests.conftest import Database
from tests.equivalence.local_engine import local_client

REPORT = "SELECT o.id, l.n FROM open_orders o JOIN lines l ON l.id = o.id"


def test_a_held_back_table_waits_for_one_that_may_stand_at_another_watermark(db: Database) -> None:
    db.execute("CREATE TABLE orders (id int); CREATE TABLE lines (id int, n int)")
    with local_client(db.dsn) as (client, _):
        client.create_watermark_group("both", ["orders", "lines"])
        client.create_stream_table("open_orders", "SELECT id FROM orders", watermark_gating="hold_back", schedule="1h")
        client.create_stream_table("report", REPORT, watermark_gating="hold_back")
        _load(db, 1)
        client.tick()
        assert db.execute("TABLE report") == [(1, 1)]
        _load(db, 2)
        db.execute("INSERT INTO lines VALUES (1, 9)")
        (result,) = client.tick()
        assert (result.stream_table, result.action) == ("public.report", "SKIP")
        assert "open_orders was not refreshed in this tick" in result.reason
        assert db.execute("TABLE report") == [(1, 1)]
        client.refresh("report")
        assert sorted(db.execute("TABLE report")) == [(1, 1), (2, 2)]


def _load(db: Database, number: int) -> None:
    db.execute(f"INSERT INTO orders VALUES ({number}); INSERT INTO lines VALUES ({number}, {number})")
    for source in ("orders", "lines"):
        db.execute(f"SELECT pgtrickle.advance_watermark('{source}', '2024-01-0{number}Z')")
