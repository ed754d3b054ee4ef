"""Keys that no index of PostgreSQL can hold are no obstacle: only the index is left out, or shorter."""

from collections.abc import Iterator

import pytest

from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

MOST = 32
NAMES = tuple(f"c{i}" for i in range(MOST + 1))
ALL, FIRST = ", ".join(NAMES), ", ".join(NAMES[:MOST])
# By the number of columns of the key, or of the body, in the index.
QUERIES = {
    "apart": ("SELECT DISTINCT * FROM wide", 0),
    "either": ("SELECT * FROM wide UNION SELECT * FROM other", 0),
    "grouped": (f"SELECT {ALL}, count(*) AS n FROM wide GROUP BY {ALL}", 0),
    "first": (f"SELECT * FROM wide ORDER BY {ALL} LIMIT 3", MOST),
    "apart_by_most": (f"SELECT DISTINCT {FIRST} FROM wide", MOST),
}
INDEXED = """
SELECT coalesce(max(i.indnkeyatts), 0) FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE i.indexprs IS NULL AND i.indrelid = ANY (
    SELECT unnest(ARRAY[t.pgt_relid, to_regclass('pgtrickle_state.body_' || t.pgt_id)])
    FROM pgtrickle.pgt_stream_tables AS t WHERE t.pgt_name = %s)"""

LONG = "factorial(2500)"  # 7,412 digits, which an index has no room for.
LONGER = "factorial(9000)"  # More than a page, even compressed.
NUMBERS = {
    "grouped": "SELECT n, count(*) AS c FROM numbers GROUP BY n",
    "apart": "SELECT DISTINCT n FROM numbers",
    "most": "SELECT n FROM numbers ORDER BY n DESC LIMIT 2",
    "most_groups": "SELECT n, count(*) AS c FROM numbers GROUP BY n ORDER BY n DESC LIMIT 2",
    # Each column is short, all together they are not.
    "declared": f"SELECT DISTINCT {', '.join(f'CAST(d + {i} AS numeric(1000)) AS d{i}' for i in range(7))}"
    " FROM numbers",
}


@pytest.fixture
def client(db: Database) -> Iterator[Client]:
    for name in ("wide", "other"):
        db.execute(f"CREATE TABLE {name} ({', '.join(f'{column} int' for column in NAMES)})")
        db.execute(
            f"INSERT INTO {name} SELECT {', '.join(f'g + {i}' for i in range(len(NAMES)))}"
            " FROM generate_series(1, 5) AS g"
        )
    with local_client(db.dsn) as (opened, _):
        yield opened


def refreshed(client: Client) -> set[str]:
    """Tick; return what was done to the stream tables, which must be right then."""
    results = client.tick()
    assert {result.error for result in results} == {None}
    assert all(result.matches for result in client.verify())
    return {result.action for result in results}


def test_more_columns_than_an_index_can_have_are_grouped_and_sorted(db: Database, client: Client) -> None:
    for name, (query, _) in QUERIES.items():
        client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    assert refreshed(client) == {"FULL"}
    assert {name: db.value(INDEXED, name) for name in QUERIES} == {name: n for name, (_, n) in QUERIES.items()}
    for change in (
        "DELETE FROM wide WHERE c0 = 2",
        "UPDATE wide SET c32 = 0 WHERE c0 < 4",
        "INSERT INTO wide (c32) VALUES (9)",
    ):
        db.execute(f"{change}; INSERT INTO wide SELECT * FROM wide WHERE c0 = 1; UPDATE other SET c32 = c32 + 1")
        assert refreshed(client) == {"DIFFERENTIAL"}


def test_the_rows_below_a_limit_are_found_by_the_first_columns_that_an_index_has_room_for(
    db: Database, client: Client
) -> None:
    """So that a refresh sorts those of them that are equal, not all."""
    db.execute("CREATE TABLE named (id int, n int, name text)")
    db.execute("INSERT INTO named SELECT g, g / 2, repeat('n', g % 7) FROM generate_series(1, 500) AS g")
    by_both, by_name = "ORDER BY n DESC, name, id LIMIT 3", "ORDER BY name, n LIMIT 3"
    for name, order in (("by_both", by_both), ("by_name", by_name)):
        client.create_stream_table(name, f"SELECT name, n, id FROM named {order}", refresh_mode="DIFFERENTIAL")
    assert refreshed(client) == {"FULL"}
    assert (db.value(INDEXED, "by_both"), db.value(INDEXED, "by_name")) == (1, 0)
    body = db.value(
        "SELECT 'pgtrickle_state.body_' || pgt_id FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'by_both'"
    )
    plan = "\n".join(line for (line,) in db.execute(f"EXPLAIN SELECT * FROM {body} {by_both}"))
    assert "Incremental Sort" in plan and "Presorted Key: n" in plan, plan
    db.execute("UPDATE named SET n = 251 WHERE id % 100 = 7; DELETE FROM named WHERE id = 500")
    assert refreshed(client) == {"DIFFERENTIAL"}


def test_rows_are_frozen_by_a_column_beyond_those_that_an_index_can_have(db: Database, client: Client) -> None:
    db.execute("ALTER TABLE wide ADD COLUMN at timestamptz DEFAULT '2026-01-01 00:00Z'")
    db.execute("SELECT pgtrickle.advance_watermark('wide', '2026-01-03 00:00Z')")
    latest = f"SELECT {FIRST}, max(at) AS at FROM wide GROUP BY {FIRST}"
    client.create_stream_table("latest", latest, frozen_after="1 day", window_end="at")
    assert (refreshed(client), db.value(INDEXED, "latest")) == ({"FULL"}, 0)
    client.alter_stream_table("latest", reset=["frozen_after"])
    assert (refreshed(client), db.value(INDEXED, "latest")) == ({"REINITIALIZE"}, MOST)
    client.alter_stream_table("latest", frozen_after="1 day")
    db.execute("INSERT INTO wide (c0, at) VALUES (77, '2026-01-02 23:00Z')")
    assert (refreshed(client), db.value(INDEXED, "latest")) == ({"DIFFERENTIAL"}, 0)


@pytest.mark.parametrize("value", [LONG, LONGER])
@pytest.mark.parametrize(("mode", "together"), [("DIFFERENTIAL", False), ("DIFFERENTIAL", True), ("FULL", False)])
def test_a_value_that_is_too_long_for_an_index_costs_the_index_alone(
    db: Database, client: Client, value: str, mode: str, together: bool
) -> None:
    db.execute("CREATE TABLE numbers (n numeric, d numeric(1000))")
    db.execute("INSERT INTO numbers SELECT n, n FROM generate_series(1, 9) AS n")
    for name, query in NUMBERS.items():
        client.create_stream_table(name, query, refresh_mode=mode)
    if together:
        client.create_refresh_group("all", list(NUMBERS))
    refreshed(client)
    assert mode == "FULL" or all(db.value(INDEXED, name) > 0 for name in NUMBERS)
    changes = (
        f"INSERT INTO numbers SELECT {value}, CAST(repeat('1234567', 140) AS numeric)",
        "DELETE FROM numbers WHERE n > 5",
        "DELETE FROM numbers",
    )
    for change in changes:
        db.execute(f"{change}; INSERT INTO numbers VALUES (1, 1)")
        assert refreshed(client) == {mode}
        for name in NUMBERS:
            db.execute("SELECT pgtrickle.reinitialize_stream_table(%s)", name)
        assert refreshed(client) == {"REINITIALIZE"}
    assert mode == "FULL" or all(db.value(INDEXED, name) > 0 for name in NUMBERS)
