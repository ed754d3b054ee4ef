"""What tests of gated reports share: event times of one day, loads and refreshes without Spark."""

from __future__ import annotations

from tests.conftest import Database
from tests.equivalence.local_engine import local_client


def at(clock: str) -> str:
    return clock if clock.endswith("infinity") else f"2026-03-01 {clock}+00"


def load(db: Database, clock: str, *sources: str) -> None:
    for source in sources or ("orders", "order_lines"):
        db.execute("SELECT pgtrickle.advance_watermark(%s, %s)", source, at(clock))


def refresh(db: Database) -> None:
    with local_client(db.dsn) as (client, _):
        client.tick()
