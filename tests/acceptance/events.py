"""Clicks and views with event times, and what append tests ask of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.acceptance.conftest import Shop

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
BIN = "date_bin('5 minutes', {}, '2000-01-01 00:00+00')"
TUMBLING = (
    f"SELECT {BIN.format('at')} AS window_start, {BIN.format('at')} + interval '5 minutes' AS window_end, page,"
    " count(*) AS clicks, sum(took) AS took, max(took) AS longest FROM clicks GROUP BY 1, page"
)
HOPPING = (
    "SELECT w.start AS window_start, w.start + interval '10 minutes' AS window_end, count(*) AS clicks"
    f" FROM clicks c, generate_series({BIN.format('c.at')} - interval '5 minutes', {BIN.format('c.at')},"
    " interval '5 minutes') AS w(start) GROUP BY w.start"
)
JOINED = (
    f"SELECT {BIN.format('c.at')} + interval '5 minutes' AS window_end, c.id, v.id AS view FROM clicks c"
    " JOIN views v ON v.page = c.page AND v.at BETWEEN c.at - interval '1 minute' AND c.at"
)
SHARED = (
    f"SELECT {BIN.format('c.at')} + interval '5 minutes' AS window_end, c.page, count(*) AS pairs FROM clicks c"
    " JOIN views v ON v.page = c.page AND v.at BETWEEN c.at - interval '1 minute' AND c.at GROUP BY 1, c.page"
)
QUERIES = {"tumbling": TUMBLING, "hopping": HOPPING, "joined": JOINED, "shared": SHARED}


def moment(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def advance(shop: Shop, seconds: float, *sources: str) -> None:
    for source in sources or ("clicks", "views"):
        shop.pt.advance_watermark(source, moment(seconds))


def closed(shop: Shop, query: str, through: datetime) -> set[tuple[Any, ...]]:
    return set(shop.db.execute(f"SELECT * FROM ({query}) AS q WHERE window_end <= %s", through))


def create(shop: Shop, gating: str, **queries: str) -> None:
    for name, query in queries.items():
        shop.pt.create_stream_table(name, query, output_mode="append", window_end="window_end", watermark_gating=gating)


def number_of(shop: Shop, name: str) -> int:
    return int(shop.db.value("SELECT pgt_id FROM pgtrickle.pgt_stream_tables WHERE pgt_name = %s", name))
