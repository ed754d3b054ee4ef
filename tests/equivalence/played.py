"""Queries that refresh differentially after each of some changes, and then are what PostgreSQL answers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences

Change = Callable[[Random], str]


def assert_differential(db: Database, tables: str, queries: Mapping[str, str], changes: Sequence[str]) -> None:
    """Create the tables and a stream table for each query; refresh and compare after each change, to the text."""
    db.execute(tables)
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        for name, query in queries.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        client.tick()
        for change in changes:
            db.execute(change)
            assert {result.action for result in client.tick()} <= {"DIFFERENTIAL", "NO_DATA"}
            for name, query in queries.items():
                assert not differences(connection, name, query, True), (name, change)


def batches(seed: int, change: Change, rounds: int, sizes: range) -> Iterable[list[str]]:
    """Write batches of random statements, each as long as one of some sizes."""
    random = Random(seed)
    for _ in range(rounds):
        yield [change(random) for _ in range(random.randrange(sizes.start, sizes.stop))]


def follow(db: Database, queries: Mapping[str, str], changes: Iterable[list[str]]) -> None:
    """Check that every stream table equals its query after each batch of statements, and that each changes at all."""
    changed = set[str]()
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        for name, query in queries.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
            client.refresh(name)
        for statements in changes:
            for statement in statements:
                db.execute(statement)
            for name, query in queries.items():
                result = client.refresh(name)
                assert result.action in ("DIFFERENTIAL", "NO_DATA"), result
                assert not differences(connection, name, query, True), name
                changed |= {name} if result.rows_inserted + result.rows_deleted else set()
    assert changed == queries.keys()
