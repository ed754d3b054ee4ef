"""Every construct by name: what must refresh differentially, what must refresh FULL and say why; both exactly."""

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from pytrickle.catalog.stream_table import resolve_name
from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.repeats import first, in_parts
from tests.servers import OLDEST

pytestmark = pytest.mark.long

CONSTRUCTS = Path(__file__).parent / "constructs"
# Of so many parts each, every one mixed, `make test` plays the first.
PARTS = 6


def texts(name: str) -> dict[str, tuple[str, str]]:
    """Read `-- name` or `-- name: part of the reason` above each query of a file: name -> (query, part)."""
    blocks = re.findall(r"-- (\w+)(?:: (.+))?\n([^;]+);", (CONSTRUCTS / f"{name}.sql").read_text())
    return {title: (query, reason) for title, reason, query in blocks}


DIFFERENTIAL = {name: query for name, (query, _) in texts("differential").items()}
FOLDED = {name: query for name, (query, _) in texts("folded").items()}
FULL = texts("full")

ROWS = [
    "INSERT INTO a VALUES ({0}, {1}, {2}, {3}, '2024-02-{4:02d}', {2}, {1}, {1}) ON CONFLICT DO NOTHING",
    "INSERT INTO b VALUES ({0}, {1}, {2}, {3}, '2024-02-{4:02d}', make_interval(hours => {0}))",
    "INSERT INTO keyless VALUES ({1}, {3}, {1}, {0} % 2 = 0, md5(({0} % 3)::text)::uuid)",
    "INSERT INTO parent VALUES ({1}, {3})",
]
CHOSEN = """
INSERT INTO chosen_ones SELECT count(*) + n, (ARRAY['sad', 'ok'])[n]::mood, int4range(n, n + 2), '{ok}'
FROM chosen_ones RIGHT JOIN generate_series(1, 2) AS n ON true GROUP BY n
"""
CHANGES = [
    "UPDATE a SET k = {1}, v = {2} WHERE id % 3 = 1",
    "UPDATE a SET t = {3}",
    "DELETE FROM a WHERE id = {0} OR k = {1}",
    "DELETE FROM b WHERE k = {1}",
    "UPDATE b SET k = {1}, i = i * 2",
    "TRUNCATE keyless",
    "UPDATE keyless SET flag = NOT flag, k = {1}",
    "UPDATE parent SET region = {3}",
    "DELETE FROM a",
    "TRUNCATE b",
]


def statements(rng: Random) -> Iterator[str]:
    """Write one batch: some changes, then rows for every table, so that joins find partners again."""
    for template in [*rng.sample(CHANGES, 3), *(row for row in ROWS for _ in range(7))]:
        yield template.format(
            rng.randint(1, 30),
            rng.choice(("NULL", 1, 2, 3)),
            rng.choice(("NULL", "1", "1.0", "1.500", "-2.25", "0", "'NaN'")),
            rng.choice(("NULL", "'a'", "'A'", "'x'", "'b'")),
            rng.randint(1, 28),
        )
    yield CHOSEN


def refresh_and_compare(
    client: Client, database: Database, queries: dict[str, str], allowed: set[str]
) -> frozenset[str]:
    """Tick, compare all stream tables with their queries, and return those that have rows."""
    for result in client.tick():
        assert result.action in allowed, f"{result.stream_table}: {result.action}, {result.error or result.reason}"
    with database.connect() as connection:
        for name, query in queries.items():
            wrong = differences(connection, f'"st_{name}"', query, False)
            assert not wrong, f"{name}: {query} differs by {wrong}"
        return frozenset(
            name for name in queries if connection.execute(f'TABLE "st_{name}" LIMIT 1'.encode()).fetchone()
        )


def full_reason(client: Client, name: str) -> str | None:
    """Ask the planner alone: an explanation reads the state of all stream tables, here two hundred."""
    connection = client._connection()
    return client._refreshing().planner.shape(connection, resolve_name(connection, name)).full_reason


def check(client: Client, database: Database, queries: dict[str, str], batches: list[list[str]]) -> None:
    """Refresh and compare after every batch of statements."""
    for name, query in queries.items():
        client.create_stream_table(f"st_{name}", query)
        reason = full_reason(client, f"st_{name}")
        assert (reason is None) == (name not in FULL), f"{name}: {reason}"
        assert reason is None or FULL[name][1] in reason, f"{name}: {reason}"
    shown = refresh_and_compare(client, database, queries, {"FULL"})
    for batch in batches:
        for statement in batch:
            database.execute(statement)
        shown |= refresh_and_compare(client, database, queries, {"FULL", "DIFFERENTIAL", "NO_DATA"})
    assert queries.keys() - shown == set(), "nothing is tested where nothing is shown"


def check_beyond_the_frontier(client: Client, database: Database, queries: dict[str, str], batch: list[str]) -> None:
    """Verify while changes are pending."""
    for statement in batch:
        database.execute(statement)
    for name in queries:
        assert client.verify(f"st_{name}").matches, f"{name}, with changes beyond its frontier"


QUERIES = {**DIFFERENTIAL, **{name: query for name, (query, _) in FULL.items()}}


@in_parts(PARTS)
def test_every_construct_equals_its_query_after_every_batch(every_db: Database, nth: int) -> None:
    every_db.execute((CONSTRUCTS / "tables.sql").read_text())
    chosen = list(QUERIES.items())[nth::PARTS]
    with local_client(every_db.dsn) as (client, _):
        rng = Random(1)
        written = [list(statements(rng)) for _ in range(2)]
        check(client, every_db, dict(chosen), written)
        verified = chosen[::3] if (nth, every_db.version) == (0, OLDEST) else chosen
        check_beyond_the_frontier(client, every_db, dict(verified), written[-1])


@pytest.mark.parametrize("begin", first(0, range(PARTS), then=2))
def test_every_construct_joined_outside_of_postgres_equals_its_query(db: Database, begin: int) -> None:
    db.execute((CONSTRUCTS / "tables.sql").read_text())
    with local_client(db.dsn, small_delta_rows=0, direct_delta_rows=0) as (client, engine):
        rng = Random(2)
        chosen = dict(list(DIFFERENTIAL.items())[begin::PARTS])
        check(client, db, chosen, [list(statements(rng)) for _ in range(2)])
        assert any(plan.join for plan in engine.plans)


def test_keys_that_ignore_case_find_their_groups_and_partners(db: Database) -> None:
    db.execute((CONSTRUCTS / "folded_tables.sql").read_text())
    steps = [
        "INSERT INTO {0} VALUES ('a', 1), ('x', 2), (NULL, 3)",
        "INSERT INTO {0} VALUES ('A', 4), ('X', 5), ('b', 6)",
        "DELETE FROM {0} WHERE n IN (1, 2)",
        "UPDATE {0} SET k = upper(k::text)",
        "DELETE FROM {0} WHERE n IN (4, 6)",
    ]
    with local_client(db.dsn) as (client, _):
        batches = [[step.format(table) for table in ("folded", "ci")] for step in steps]
        check(client, db, FOLDED, batches)
        check_beyond_the_frontier(client, db, FOLDED, batches[-1])
