"""How long an idle daemon takes from the commit of an advance to the refresh that it wakes."""

from queue import Queue
from threading import Thread
from time import monotonic

import psycopg

import pytrickle
from pytrickle.database import connect

POLL = 60.0
ADVANCES = 20
PAUSE = "SELECT pg_sleep(0.3)"
LOAD = "WITH row AS (INSERT INTO loads VALUES (%(n)s)) SELECT pgtrickle.advance_watermark('loads', now())"
# When the refresh began and when it was committed, by the clock of the database, which is also the loader's.
SEEN = (
    "SELECT extract(epoch FROM h.started_at - w.advanced_at), extract(epoch FROM h.finished_at - w.advanced_at)"
    " FROM pgtrickle.pgt_refresh_history AS h, pgtrickle.pgt_watermarks AS w ORDER BY h.refresh_id DESC LIMIT 1"
)


def measure_wake(dsn: str) -> tuple[list[float], list[float]]:
    """Return the seconds from an advance to the start of the refresh that it wakes, and to the end of it.

    The daemon would poll once a minute only, so that whatever is quicker was woken.
    """
    refreshed: Queue[float] = Queue()
    with connect(dsn, role="loader") as loader, pytrickle.connect(dsn, poll_interval=POLL) as client:
        loader.execute("SET search_path TO DEFAULT")
        loader.execute("CREATE TABLE loads (id bigint PRIMARY KEY)")
        client.create_stream_table("loaded", "SELECT id FROM loads")
        daemon = Thread(target=client.run, kwargs={"on_result": lambda result: refreshed.put(monotonic())})
        daemon.start()
        try:
            refreshed.get(timeout=POLL)
            seen = [_wake(loader, refreshed, number) for number in range(ADVANCES)]
        finally:
            client.stop()
            daemon.join()
    return [start for start, _ in seen], [end for _, end in seen]


def _wake(loader: psycopg.Connection, refreshed: "Queue[float]", number: int) -> tuple[float, float]:
    """Let the daemon fall idle, load a row and advance, and return seconds to start and end of its refresh."""
    loader.execute(PAUSE)
    loader.execute(LOAD, {"n": number})
    refreshed.get(timeout=POLL)
    row = loader.execute(SEEN).fetchone()
    assert row is not None
    return float(row[0]), float(row[1])
