"""What is undone within a transaction that goes on, though a limit that was set there ends while that is done."""

import psycopg
import pytest
from psycopg.errors import QueryCanceled
from psycopg.pq import PGconn
from psycopg.pq.abc import PGresult

from pytrickle.database import undone
from tests.conftest import Database

LIMIT = "SET LOCAL statement_timeout = '1ms'"


class Ending:
    """Stands for the wire while the limit ends: the next command fails, as a cancelled one does, and aborts."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection, self.wire = connection, connection.pgconn

    def exec_(self, command: bytes) -> PGresult:
        self.connection.pgconn = self.wire
        return self.wire.exec_(b"SELECT 1 / 0")


def test_the_transaction_goes_on_though_undoing_was_cancelled(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with db.connect() as connection, connection.transaction():
        with undone(connection):
            connection.execute("CREATE TEMP TABLE made (id int)")
            connection.execute(LIMIT)
            monkeypatch.setattr(connection, "pgconn", Ending(connection))
        assert isinstance(connection.pgconn, PGconn), "a command was sent"
        assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)
        assert connection.execute("SELECT to_regclass('made')").fetchone() == (None,)


def test_a_statement_that_takes_too_long_is_undone(db: Database) -> None:
    with db.connect() as connection, connection.transaction():
        with pytest.raises(QueryCanceled), undone(connection):
            connection.execute(LIMIT)
            connection.execute("SELECT pg_sleep(1)")
        assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)
