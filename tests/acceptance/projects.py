"""A project of stream tables over a small shop, for tests of definitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import pytrickle
from pytrickle.definitions.values import Plan
from tests.conftest import Database

TABLES = (
    "CREATE TABLE orders (id bigint PRIMARY KEY, region text, amount numeric)",
    "CREATE TABLE lines (id bigint PRIMARY KEY, order_id bigint, amount numeric)",
    "INSERT INTO orders SELECT i, 'r' || i % 3, i FROM generate_series(1, 30) AS i",
)
TOTALS = """-- pytrickle: tier = warm
-- pytrickle: schedule = 5m
SELECT region, sum(amount) AS amount FROM orders GROUP BY region
"""
LARGE = "SELECT region FROM totals WHERE amount > 10\n"
SETTINGS = """project = "shop"

[defaults]
schedule = "1m"

[watermark_groups.pipeline]
sources = ["orders", "lines"]
tolerance = "5 minutes"
idle_after = "1 day"

[refresh_groups.both]
members = ["large", "totals"]
"""
LEFT = (
    "SELECT (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_trigger),"
    " (SELECT count(*) FROM pgtrickle.pgt_stream_tables)"
)


@pytest.fixture
def shop(db: Database) -> Database:
    for statement in TABLES:
        db.execute(statement)
    return db


@pytest.fixture
def pt(shop: Database) -> Iterator[pytrickle.Client]:
    with pytrickle.connect(shop.dsn, engine="postgres") as client:
        yield client


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, {"pytrickle.toml": SETTINGS, "totals.sql": TOTALS, "a_part/large.sql": LARGE})
    return tmp_path


def write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text)


def told(plan: Plan) -> list[tuple[str, str, str]]:
    return [(change.action, change.kind, change.name) for change in plan.changes]
