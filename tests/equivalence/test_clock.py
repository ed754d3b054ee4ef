"""Q8: what depends on the clock changes although nothing was captured."""

from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.waiting import wait_for

LONG = 30.0


def test_rows_age_out_although_no_change_is_captured(db: Database) -> None:
    db.execute("CREATE TABLE offers (id int, ends timestamptz)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("valid", "SELECT id FROM offers WHERE ends > now()")
        client.create_stream_table("total", "SELECT count(*) AS n FROM valid", refresh_mode="DIFFERENTIAL")
        db.execute("INSERT INTO offers VALUES (1, 'infinity')")
        client.tick()
        brief = _shown_offer(db, client)
        assert db.execute("TABLE total") == [(2,)]
        wait_for(lambda: db.value("SELECT ends < now() FROM offers WHERE id = %s", brief), "the offer to end")
        results = {result.stream_table: result for result in client.tick()}
        assert db.execute("TABLE valid") == [(1,)]
        assert db.execute("TABLE total") == [(1,)]
        assert results["public.valid"].action == "FULL"
        assert results["public.total"].action == "DIFFERENTIAL"
        captured = "SELECT delta_rows FROM pgtrickle.refresh_history('valid', 1)"
        assert db.value(captured) == 0


def _shown_offer(db: Database, client: Client) -> int:
    """Make offers that end soon, until one is shown before it ends: a busy machine may take its time."""
    brief, lasts = 1, 0.25
    while True:
        brief += 1
        db.execute("DELETE FROM offers WHERE id > 1")
        db.execute("INSERT INTO offers VALUES (%s, clock_timestamp() + %s * interval '1 s')", brief, lasts)
        client.tick()
        if db.execute("SELECT id FROM valid WHERE id = %s", brief):
            return brief
        lasts *= 2
        assert lasts < LONG, "an offer that still holds is not shown"
