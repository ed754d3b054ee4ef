"""One script played statement by statement; its queries as stream tables in a copy of the database of that moment."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

import pytrickle
from pytrickle.client.client import Client
from tests.conftest import TEMPLATE, Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.strangers.played import Played
from tests.equivalence.strangers.rounds import play
from tests.equivalence.strangers.script import statements
from tests.servers import OLDEST, Server, binaries

MOST = 10  # stream tables in one database
BEGUN = "strangers_begun"
TIMEOUT = "300s"
_QUERY = re.compile(r"[\s(]*(select|with|values|table)\b", re.IGNORECASE)
_LEFT_OUT = re.compile(r"\s*(begin|commit|rollback|abort|end|start|savepoint|release|prepare|execute|vacuum)\b", re.I)
_HARMLESS = re.compile(r"\s*(explain|set|reset|show|analyze|comment)\b", re.IGNORECASE)
_TEMPORARY = re.compile(r"\b(create|create or replace)\s+(local\s+)?temp(orary)?\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Player:
    """Plays the scripts of a directory on a server, by the tests' own engine or by the given Spark session.

    `only` is a text that the queries to play contain, `first` and `last` are their numbers within their script, and
    `chosen` those of which (script, query) is among them; None means all.
    """

    server: Server
    directory: Path
    session: Any = None
    small_delta_rows: int = 20_000
    only: str = ""
    first: int = 1
    last: int = sys.maxsize
    chosen: frozenset[tuple[str, str]] | None = None

    def prepare(self) -> None:
        """Make the database that every script begins with: pytrickle and the tables of test_setup."""
        dsn = self.server.create(BEGUN, TEMPLATE)
        environment = {**os.environ, "PG_ABS_SRCDIR": str(self.directory), "PG_LIBDIR": "", "PG_DLSUFFIX": ""}
        program, script = binaries(OLDEST) / "psql", self.directory / "sql" / "test_setup.sql"
        command = [str(program), "-X", "-q", "-d", dsn, "-f", str(script)]
        subprocess.run(command, env=environment, capture_output=True, check=False)

    def play_script(self, name: str) -> Iterator[Played]:
        """Run a script; play the queries that stand between two statements of other kinds together."""
        with self.server.database(BEGUN) as dsn:
            _limit(dsn)
            yield from self._play_statements(name, dsn)

    def _play_statements(self, name: str, dsn: str) -> Iterator[Played]:
        database = str(conninfo_to_dict(dsn)["dbname"])
        pending: list[Played] = []
        number = 0
        for statement in statements((self.directory / "sql" / f"{name}.sql").read_text()):
            if _QUERY.match(statement):
                number += 1
                pending += [Played(name, statement)] if self._wants(name, number, statement) else []
            elif not _LEFT_OUT.match(statement):
                if not _HARMLESS.match(statement):
                    yield from self._play_all(database, pending)
                    pending = []
                _run(dsn, _TEMPORARY.sub(r"\1 ", statement))
        yield from self._play_all(database, pending)

    def play_again(self, played: list[Played]) -> list[Played]:
        """Play queries once more, over what every script begins with."""
        return list(self._play_all(BEGUN, [Played(each.file, each.query) for each in played]))

    def _wants(self, name: str, number: int, query: str) -> bool:
        is_chosen = self.chosen is None or (name, query) in self.chosen
        return is_chosen and self.first <= number <= self.last and self.only in query

    def _play_all(self, database: str, queries: list[Played]) -> Iterator[Played]:
        for first in range(0, len(queries), MOST):
            yield from self._play_together(database, queries[first : first + MOST])

    def _play_together(self, database: str, queries: list[Played]) -> list[Played]:
        """Play queries in one database; what breaks there is played again by itself, so that it blames itself alone."""
        self._play(database, queries)
        if len(queries) == 1 or not any(each.status == "crash" for each in queries):
            return queries
        alone = [Played(each.file, each.query) for each in queries]
        for each in alone:
            self._play(database, [each])
        return alone

    def _play(self, database: str, queries: list[Played]) -> None:
        with self.server.database(database) as dsn:
            _limit(dsn)
            with self._client(dsn) as client:
                db = Database(dsn, self.server.version)
                play(db, client, queries)
                db.close()

    @contextmanager
    def _client(self, dsn: str) -> Iterator[Client]:
        if self.session is None:
            with local_client(dsn, small_delta_rows=self.small_delta_rows) as (client, _):
                yield client
        else:
            settings = {"small_delta_rows": self.small_delta_rows, "direct_delta_rows": 0}
            with pytrickle.connect(dsn, self.session, **settings) as client:
                client._engine.owned = True  # tuned to each plan, as a session is that nobody brought
                yield client


def _limit(dsn: str) -> None:
    """Stop what takes too long, in sessions that begin later; the copy of a database has none of its settings."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for setting in (f"statement_timeout = '{TIMEOUT}'", "jit = off"):
            connection.execute(f"ALTER DATABASE {connection.info.dbname} SET {setting}".encode())


def _run(dsn: str, statement: str) -> None:
    with suppress(psycopg.Error), psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement.encode())
