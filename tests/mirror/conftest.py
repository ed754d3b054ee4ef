"""A database in which scripts written for the extension pg_trickle run, and the refresher beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from threading import Thread
from typing import Any

import psycopg
import pytest

from pytrickle.client.client import Client
from pytrickle.refresh.values import RefreshResult
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.waiting import wait_for


@dataclass(frozen=True)
class Mirror:
    """Runs a script's statements as they are; `tick` stands for the extension's scheduler."""

    db: Database
    client: Client

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.db.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.db.execute(query)

    def value(self, query: str) -> Any:
        return self.db.value(query)

    def error(self, statement: str) -> str:
        """Run a statement that must fail; return its message and its hint."""
        with pytest.raises(psycopg.Error) as failure:
            self.db.execute(statement)
        return f"{failure.value.diag.message_primary} {failure.value.diag.message_hint}"

    def tick(self) -> tuple[RefreshResult, ...]:
        return self.client.tick()

    def filled(self, *statements: str) -> None:
        """Run statements that create stream tables, and have these filled as the extension does at creation."""
        self.run(*statements)
        assert not [result for result in self.tick() if result.error]

    @contextmanager
    def refresher(self) -> Iterator[None]:
        """Keep a refresher running for the length of the block: a refresh asked for from SQL needs one."""
        with local_client(self.db.dsn, poll_interval=timedelta(hours=1)) as (client, _):
            thread = Thread(target=client.run)
            thread.start()
            try:
                wait_for(lambda: self.value("SELECT pgtrickle_private.refresher_runs()"), "the refresher")
                yield
            finally:
                client.stop()
                thread.join()

    def refresh(self, *names: str) -> None:
        """Refresh by hand, as a script does; the rows are there when the call returns."""
        with self.refresher():
            for name in names:
                self.db.execute("SELECT pgtrickle.refresh_stream_table(%s)", name)

    def assert_equal(self, table: str, query: str) -> None:
        """A stream table has the rows of its query, as often as the query has them, and there are some."""
        found, expected = self.rows(f"TABLE {table}"), self.rows(query)
        assert expected and Counter(found) == Counter(expected)


@pytest.fixture
def mirror(db: Database) -> Iterator[Mirror]:
    with local_client(db.dsn) as (client, _):
        yield Mirror(db, client)
