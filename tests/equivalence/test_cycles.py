"""Cycles against WITH RECURSIVE: after every batch of changes each member holds the least fixed point, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import psycopg
import pytest

from pytrickle.client.client import Client
from pytrickle.errors import QueryRefused
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.runs import disable_jit
from tests.repeats import first

NODES = 9
BATCHES = 14
TABLES = """
CREATE TABLE edges (src int NOT NULL, dst int NOT NULL);
CREATE TABLE seeds (node int NOT NULL);
CREATE TABLE closed (node int NOT NULL);
CREATE INDEX ON edges (src);
INSERT INTO edges VALUES (1, 2), (2, 3), (3, 2), (4, 1);
INSERT INTO seeds VALUES (1);
"""

# Name -> (the query it is created with, the query that closes the cycle, what WITH RECURSIVE makes of it).
CLOSURE = {
    "reach": (
        "SELECT DISTINCT src, dst FROM edges",
        "SELECT src, dst FROM edges UNION SELECT src, dst FROM onward",
        "WITH RECURSIVE r AS (SELECT src, dst FROM edges UNION"
        " SELECT r.src, e.dst FROM r JOIN edges AS e ON e.src = r.dst) SELECT * FROM r",
    ),
    # Keeps duplicates: one row for every way in which the last step can be taken.
    "onward": (
        "SELECT r.src, e.dst FROM reach AS r JOIN edges AS e ON e.src = r.dst",
        None,
        "WITH RECURSIVE r AS (SELECT src, dst FROM edges UNION"
        " SELECT r.src, e.dst FROM r JOIN edges AS e ON e.src = r.dst)"
        " SELECT r.src, e.dst FROM r JOIN edges AS e ON e.src = r.dst",
    ),
}
ITSELF = {
    "paths": (
        "SELECT DISTINCT src, dst FROM edges",
        "SELECT src, dst FROM edges UNION SELECT a.src, b.dst FROM paths AS a JOIN paths AS b ON a.dst = b.src",
        CLOSURE["reach"][2],
    )
}
ALIVE = (
    "WITH RECURSIVE a AS (SELECT node FROM seeds UNION SELECT e.dst FROM a JOIN edges AS e ON e.src = a.node"
    " WHERE NOT EXISTS (SELECT FROM closed AS c WHERE c.node = e.dst))"
)
# Three members, one of which takes what is closed away: rows may come to a source and make rows go.
WALK = {
    "alive": (
        "SELECT DISTINCT node FROM seeds",
        "SELECT node FROM seeds UNION SELECT node FROM open",
        f"{ALIVE} TABLE a",
    ),
    "next": (
        "SELECT DISTINCT e.dst AS node FROM edges AS e WHERE e.src IN (SELECT a.node FROM alive AS a)",
        None,
        f"{ALIVE} SELECT DISTINCT e.dst AS node FROM edges AS e WHERE e.src IN (SELECT a.node FROM a)",
    ),
    "open": (
        "SELECT n.node FROM next AS n WHERE NOT EXISTS (SELECT FROM closed AS c WHERE c.node = n.node)",
        None,
        f"{ALIVE} SELECT DISTINCT e.dst AS node FROM edges AS e JOIN a ON e.src = a.node"
        " WHERE NOT EXISTS (SELECT FROM closed AS c WHERE c.node = e.dst)",
    ),
}

# The same in one stream table that reads itself: what takes rows away stands beside what grows.
ALONE = {
    "beside": "edges AS e WHERE EXISTS (SELECT FROM walk AS w WHERE w.node = e.src)"
    " AND NOT EXISTS (SELECT FROM closed AS c WHERE c.node = e.dst)",
    "distinct": "edges AS e, (SELECT DISTINCT node FROM walk) AS w WHERE w.node = e.src"
    " AND e.dst NOT IN (SELECT c.node FROM closed AS c)",
    "outer": "edges AS e LEFT JOIN closed AS c ON c.node = e.dst"
    " WHERE c.node IS NULL AND e.src IN (SELECT w.node FROM walk AS w)",
    "folded": "walk AS w JOIN edges AS e ON e.src = w.node LEFT JOIN seeds AS s ON s.node = e.dst"
    " LEFT JOIN seeds AS t ON t.node = e.src LEFT JOIN closed AS d ON d.node = e.src"
    " LEFT JOIN closed AS c ON c.node = e.dst WHERE c.node IS NULL",
}


def alone(rest: str) -> dict[str, tuple[str, str | None, str]]:
    """Write one stream table that walks the graph by itself."""
    first = "SELECT DISTINCT node FROM seeds"
    return {"walk": (first, f"SELECT node FROM seeds UNION SELECT e.dst FROM {rest}", f"{ALIVE} TABLE a")}


@pytest.fixture
def graph(db: Database) -> Iterator[tuple[Database, Client]]:
    """A small graph with a circle in it, seeds and closed nodes."""
    disable_jit(db)
    db.execute("SET jit = off")
    with db.connect() as connection:
        connection.execute(TABLES)
    with local_client(db.dsn) as (client, _):
        yield db, client


def close(client: Client, tables: dict[str, tuple[str, str | None, str]]) -> None:
    """Create stream tables, then let those read each other that shall."""
    for name, (initial, _, _) in tables.items():
        client.create_stream_table(name, initial, allow_circular=True)
    for name, (_, last, _) in tables.items():
        if last:
            client.alter_stream_table(name, query=last)


def tick(client: Client) -> dict[str, str]:
    results = client.tick()
    assert not [result for result in results if result.error]
    return {result.stream_table.partition(".")[2]: result.action for result in results}


def differences(db: Database, expected: str, name: str) -> list[tuple[object, ...]]:
    both = f"(({expected}) EXCEPT ALL TABLE {name}) UNION ALL (TABLE {name} EXCEPT ALL ({expected}))"
    return db.execute(both)


def assert_least(db: Database, tables: dict[str, tuple[str, str | None, str]]) -> None:
    for name, (_, _, expected) in tables.items():
        assert differences(db, expected, name) == []


def change(rng: Random, connection: psycopg.Connection, gains: bool) -> None:
    """Insert some rows, or delete, update and insert some, in one transaction."""
    node = lambda: rng.randrange(1, NODES)  # noqa: E731
    with connection.transaction():
        for _ in range(rng.randrange(1, 4)):
            connection.execute("INSERT INTO edges VALUES (%s, %s)", (node(), node()))
        if gains:
            return
        source, column = rng.choice([("edges", "src"), ("edges", "dst"), ("seeds", "node"), ("closed", "node")])
        connection.execute(f"DELETE FROM {source} WHERE {column} = %s".encode(), (node(),))
        connection.execute("DELETE FROM edges WHERE ctid IN (SELECT ctid FROM edges ORDER BY src, dst LIMIT 3)")
        connection.execute("UPDATE edges SET dst = %s WHERE src = %s", (node(), node()))
        connection.execute("INSERT INTO seeds VALUES (%s)", (node(),))


@pytest.mark.parametrize(
    "tables",
    [CLOSURE, ITSELF, WALK, *first(2, map(alone, ALONE.values()))],
    ids=["closure", "itself", "walk", *ALONE],
)
def test_generated_changes_leave_the_least_fixed_point(
    graph: tuple[Database, Client], tables: dict[str, tuple[str, str | None, str]]
) -> None:
    db, client = graph
    close(client, tables)
    assert set(tick(client).values()) == {"FULL"}
    assert_least(db, tables)
    rng, writer = Random(20261), db.connect()
    for batch in range(BATCHES):
        gains = batch % 2 == 0
        change(rng, writer, gains)
        done = tick(client)
        assert done.keys() == tables.keys()
        assert gains or set(done.values()) == {"FULL"}, f"batch {batch}: {done}"
        assert not gains or set(done.values()) <= {"DIFFERENTIAL", "NO_DATA"}, f"batch {batch}: {done}"
        assert_least(db, tables)
        assert db.value("SELECT count(DISTINCT refresh_xid) FROM pgtrickle.pgt_stream_tables") == 1 or gains
    assert db.value(f"SELECT count(*) FROM {next(iter(tables))}") > 5
    assert set(tick(client).values()) == {"NO_DATA"}
    assert all(client.verify(name).matches for name in tables)


def test_rows_that_only_support_each_other_go_with_their_support(graph: tuple[Database, Client]) -> None:
    """2 and 3 lead to each other: once nothing leads there, they must not keep each other alive."""
    db, client = graph
    close(client, WALK)
    tick(client)
    assert sorted(db.execute("TABLE alive")) == [(1,), (2,), (3,)]
    db.execute("DELETE FROM seeds")
    tick(client)
    assert db.execute("TABLE alive") == db.execute("TABLE next") == []
    db.execute("INSERT INTO seeds VALUES (3)")
    assert tick(client)["alive"] == "DIFFERENTIAL"
    assert sorted(db.execute("TABLE alive")) == [(2,), (3,)]


def test_rows_that_come_may_make_rows_go(graph: tuple[Database, Client]) -> None:
    """Nothing was deleted anywhere, but what is closed now no longer leads on."""
    db, client = graph
    close(client, WALK)
    tick(client)
    db.execute("INSERT INTO closed VALUES (2)")
    assert set(tick(client).values()) == {"FULL"}
    assert db.execute("TABLE alive") == [(1,)]
    assert_least(db, WALK)


def test_only_the_difference_is_written_and_shown_to_others(graph: tuple[Database, Client]) -> None:
    db, client = graph
    close(client, CLOSURE)
    client.create_stream_table("ends", "SELECT dst, count(*) AS ways FROM reach GROUP BY dst")
    tick(client)
    before = dict(db.execute("SELECT (src, dst)::text, ctid::text FROM reach"))
    db.execute("DELETE FROM edges WHERE (src, dst) = (4, 1)")
    assert tick(client) == {"reach": "FULL", "onward": "FULL", "ends": "DIFFERENTIAL"}
    after = dict(db.execute("SELECT (src, dst)::text, ctid::text FROM reach"))
    gone = before.keys() - after.keys()
    assert len(gone) == 3 and after.items() < before.items()
    delta = "SELECT delta_rows FROM pgtrickle.refresh_history('ends', 1)"
    assert db.value(delta) == 3
    assert differences(db, "SELECT dst, count(*) FROM reach GROUP BY dst", "ends") == []
    buffers = [name for (name,) in db.execute("SELECT buffer FROM pgtrickle.pgt_change_tracking")]
    assert len(buffers) >= 3 and not [name for name in buffers if db.value(f"SELECT count(*) FROM {name}")]


REFUSED = {
    "an aggregate": "SELECT src, max(dst) AS dst FROM onward GROUP BY src",
    "NOT EXISTS": "SELECT src, dst FROM edges AS e WHERE NOT EXISTS (SELECT FROM onward AS o WHERE o.src = e.dst)",
    "outer join": "SELECT e.src, o.dst FROM edges AS e LEFT JOIN onward AS o ON o.src = e.dst",
    "as under OR": "SELECT src, dst FROM edges AS e WHERE e.src IN (SELECT o.dst FROM onward AS o) OR e.src = 4",
    "for want of a match": "SELECT e.src, e.dst FROM edges AS e WHERE NOT EXISTS (SELECT FROM closed AS c WHERE"
    " c.node = e.dst) AND NOT EXISTS (SELECT FROM onward AS o WHERE o.src = e.dst)",
    "EXCEPT": "SELECT src, dst FROM edges EXCEPT SELECT src, dst FROM onward",
    "a window function": "SELECT src, (row_number() OVER (ORDER BY src, dst))::int AS dst FROM onward",
    "DISTINCT ON": "SELECT DISTINCT ON (src) src, dst FROM onward ORDER BY src, dst",
    "a scalar subquery": "SELECT src, (SELECT o.dst FROM onward AS o WHERE o.src = e.dst) AS dst FROM edges AS e",
    "LIMIT": "SELECT src, dst FROM onward ORDER BY src, dst LIMIT 3",
    "a group key that is not shown": "SELECT src, 1 AS dst FROM onward GROUP BY src, dst",
    "WITH RECURSIVE": "WITH RECURSIVE r AS (SELECT src, dst FROM onward UNION SELECT src, dst FROM r) SELECT * FROM r",
    "removes duplicates": "SELECT src, dst FROM edges UNION ALL SELECT src, dst FROM onward",
}
ACCEPTED = (
    "SELECT src, dst FROM onward INTERSECT SELECT src, dst FROM edges",
    "SELECT DISTINCT src, dst FROM edges WHERE EXISTS (SELECT FROM onward AS o WHERE o.src = edges.dst)",
    "SELECT src, dst FROM onward GROUP BY src, dst HAVING src > 0",
    "SELECT DISTINCT o.src, e.most AS dst FROM onward AS o JOIN (SELECT src, max(dst) AS most FROM edges GROUP BY src)"
    " AS e ON e.src = o.dst",
    "SELECT DISTINCT o.src, s.node AS dst FROM onward AS o LEFT JOIN seeds AS s ON s.node = o.dst",
    "SELECT DISTINCT o.src, o.dst FROM onward AS o WHERE o.dst NOT IN (SELECT c.node FROM closed AS c)",
)


def test_queries_that_may_lose_rows_are_refused_with_their_reason(graph: tuple[Database, Client]) -> None:
    db, client = graph
    for name, (initial, _, _) in CLOSURE.items():
        client.create_stream_table(name, initial, allow_circular=True)
    for reason, query in REFUSED.items():
        with pytest.raises(QueryRefused, match=reason) as refused:
            client.alter_stream_table("reach", query=query)
        assert "UNION" in str(refused.value.hint)
    assert db.value("SELECT defining_query FROM pgtrickle.pgt_stream_tables WHERE pgt_id = 1") == CLOSURE["reach"][0]
    for query in ACCEPTED:
        client.alter_stream_table("reach", query=query)
        tick(client)
        assert client.verify("reach").matches and client.verify("onward").matches


def test_equal_values_that_may_differ_are_refused(graph: tuple[Database, Client]) -> None:
    """Which of 1.0 and 1.00 stays would depend on the order in which they are found."""
    db, client = graph
    db.execute("CREATE TABLE amounts (x numeric)")
    client.create_stream_table("sums", "SELECT DISTINCT x FROM amounts", allow_circular=True)
    with pytest.raises(QueryRefused, match="type numeric"):
        client.alter_stream_table("sums", query="SELECT x FROM amounts UNION SELECT x * 1.0 FROM sums")


@pytest.mark.parametrize("fused", CLOSURE)
def test_the_fuse_of_any_member_holds_the_whole_cycle(graph: tuple[Database, Client], fused: str) -> None:
    db, client = graph
    close(client, CLOSURE)
    tick(client)
    client.alter_stream_table(fused, fuse_ceiling=5)
    db.execute("INSERT INTO edges SELECT i, i + 1 FROM generate_series(100, 119) AS i")
    results = {result.stream_table: result for result in client.tick()}
    assert {result.action for result in results.values()} == {"SKIP"}
    assert "the fuse of 5" in str(results[f"public.{fused}"].reason)
    assert db.value("SELECT max(src) FROM reach") < 100


def test_what_sql_let_pass_fails_at_the_tick_and_changes_nothing(graph: tuple[Database, Client]) -> None:
    db, client = graph
    for name, (initial, _, _) in CLOSURE.items():
        client.create_stream_table(name, initial, allow_circular=True)
    tick(client)
    before = [db.execute(f"TABLE {name}") for name in CLOSURE]
    db.execute("SELECT pgtrickle.alter_stream_table('reach', query => %s)", REFUSED["an aggregate"])
    results = {result.stream_table: result for result in client.tick()}
    assert "cannot be in a cycle because of an aggregate" in str(results["public.reach"].error)
    assert results["public.onward"].action == "SKIP"
    assert [db.execute(f"TABLE {name}") for name in CLOSURE] == before
    assert "refused: public.reach cannot be in a cycle" in client.explain("onward").text
