"""What a refresher and its server say to each other, as its client library traces it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.acceptance.conftest import Shop


@dataclass(frozen=True, slots=True)
class Message:
    """A message: whether the refresher `sent` it, what kind it is, and what it says."""

    sent: bool
    kind: str
    text: str


@contextmanager
def traced(path: Path, connections: Iterable[psycopg.Connection]) -> Iterator[list[Message]]:
    """Trace what passes through connections while the block runs; the messages are there once it has ended."""
    found, traced_connections = list[Message](), list(connections)
    with path.open("wb") as target:
        for connection in traced_connections:
            connection.pgconn.trace(target.fileno())
        yield found
        for connection in traced_connections:
            connection.pgconn.untrace()
    lines = (line.split("\t", 4) for line in path.read_text().splitlines())
    found += [Message(line[1] == "F", line[3], "".join(line[4:])) for line in lines if len(line) > 3]


def writing(shop: Shop) -> list[psycopg.Connection]:
    """Return the connection that refreshes write through."""
    return [shop.pt._refreshing().connection]


def every(shop: Shop) -> list[psycopg.Connection]:
    """Return it with those that hold snapshots."""
    refresher = shop.pt._refreshing()
    return [refresher.connection, *refresher.snapshots.idle]
