"""A year of ticks with few rows each leaves change buffers and state tables as small as its first weeks did."""

from __future__ import annotations

from collections import Counter

import pytest

import pytrickle
from tests.conftest import Database
from tests.repeats import first
from tests.waiting import wait_for

TABLES = (
    "CREATE TABLE visitors (id int PRIMARY KEY, name text NOT NULL)",
    "CREATE TABLE visits (id int PRIMARY KEY, visitor int NOT NULL, seconds int NOT NULL)",
    "CREATE INDEX ON visits (visitor)",
)
TOTALS = "count(*) AS n, sum(seconds) AS seconds, min(seconds) AS least"
# The groups go with their visitors. A stream table that reads another one reads a buffer, too.
QUERIES = {
    "totals": f"SELECT visitor, {TOTALS} FROM visits GROUP BY visitor",
    "named": f"SELECT name, {TOTALS} FROM visits JOIN visitors AS r ON r.id = visitor GROUP BY name",
    "lengths": "SELECT DISTINCT seconds FROM visits",
    "onward": "SELECT n, count(*) AS visitors FROM totals GROUP BY n",
}
# Of every day there is a tick after each of these. What came on a day goes a week later, and changes twice before.
CHANGES = (
    "INSERT INTO visitors SELECT n, repeat('visitor ' || n, 9) FROM generate_series({day} * 10, {day} * 10 + 9) AS n",
    "INSERT INTO visits SELECT n, n / 3, n FROM generate_series({day} * 30, {day} * 30 + 29) AS n",
    "UPDATE visits SET seconds = seconds + 1 WHERE id / 30 IN ({day} - 2, {day} - 4)",
    "DELETE FROM visits WHERE id / 30 = {day} - 7",
    "DELETE FROM visitors WHERE id / 10 = {day} - 7",
)
FIRST_WEEKS, FURTHER_PAGES = 15, 2
BUFFERS, STATES = "pgtrickle_changes", "pgtrickle_state"
SIZES = f"""
SELECT format('%I.%I', n.nspname, c.relname), pg_total_relation_size(c.oid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname IN ('{BUFFERS}', '{STATES}')
"""
# Rows that an older snapshot may see stay. Autovacuum holds one while it analyzes, on a busy machine for a whole day.
OTHER_SNAPSHOTS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xmin IS NOT NULL
"""


@pytest.mark.parametrize("days", first(1, (45, 365), then=0))
def test_a_year_of_ticks_leaves_buffers_and_state_tables_as_small_as_its_first_weeks(db: Database, days: int) -> None:
    for statement in TABLES:
        db.execute(statement)
    sizes, refreshed = [], Counter[str]()
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        for name, query in QUERIES.items():
            client.create_stream_table(name, query)
        client.tick()
        for day in range(days):
            for change in CHANGES:
                db.execute(change.format(day=day))
                refreshed.update(result.stream_table for result in client.tick() if result.action == "DIFFERENTIAL")
            sizes.append(_sizes(db))
        assert all(client.verify(name).matches for name in QUERIES)
    # What is refreshed in whole has nothing to clean up.
    assert all(refreshed[f"public.{name}"] > days for name in QUERIES), refreshed
    assert {table.split(".")[0] for table in sizes[-1]} == {BUFFERS, STATES}
    early, late = _largest(sizes[:FIRST_WEEKS]), _largest(sizes[FIRST_WEEKS:])
    assert {table: size for table, size in late.items() if size > early[table] + FURTHER_PAGES * 8192} == {}


def _sizes(db: Database) -> dict[str, int]:
    """Vacuum, as a server does of itself within a day, and return the bytes of every table with its indexes."""
    wait_for(lambda: db.value(OTHER_SNAPSHOTS) == 0, "other snapshots to end")
    for table, _ in db.execute(SIZES):
        db.execute(f"VACUUM {table}")
    return dict(db.execute(SIZES))


def _largest(sizes: list[dict[str, int]]) -> dict[str, int]:
    return {table: max(size[table] for size in sizes) for table in sizes[0]}
