"""What the console reads: short read-only transactions over a few connections, each with a time limit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from logging import getLogger
from threading import Lock
from time import monotonic
from typing import TypeVar

import psycopg
import sqlalchemy

import pytrickle
from pytrickle.catalog import read_reports
from pytrickle.catalog.reports import Status
from pytrickle.client.client import Client
from pytrickle.config import Settings
from pytrickle.database import connection_string, limited, translate_errors
from pytrickle.database.engine import Pool, engine
from pytrickle.errors import PytrickleError, StatementTimeout
from pytrickle.inspect.explain import Explanation
from pytrickle.readable import ended

log = getLogger("pytrickle.console")

LIMIT = timedelta(seconds=15)
PATIENCE = 10.0
# A look is followed by a rest, the longer the longer it took.
REST = 1.0
RESTING = 4
LONGEST_REST = 15.0
# What of a state is another at each look, beside spans of time.
AGEING = frozenset({"as_of", "freshness"})

Result = TypeVar("Result")


class Database:
    """One database as several threads look at it."""

    def __init__(self, dsn: str | None) -> None:
        given = Settings.from_environment(connection_string(dsn)).dsn
        self._pool = Pool(engine(limited(given, LIMIT, read_only=True)))
        # A plan is made with views of the session alone, which are rolled back: a query is compared with its text.
        self._dsn = limited(given, LIMIT, read_only=False)
        self._explaining = Lock()
        self._client: Client | None = None

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()
        if self._client is not None:
            self._client.close()

    def read(self, reading: Callable[[sqlalchemy.Connection], Result]) -> Result:
        """Return what a function reads over a connection that is not in a transaction yet."""
        with translate_errors(), self._pool.engine.connect() as connection:
            return reading(connection)

    def report(self, reading: Callable[[psycopg.Connection], Result]) -> Result:
        """Return what one of the catalog's reports says."""
        with translate_errors(), self._pool.borrow() as connection:
            return reading(connection)

    def explain(self, name: str) -> Explanation:
        """Explain a stream table; one at a time, as a client belongs to one thread.

        Raises StatementTimeout where others are explained for too long.
        """
        if not self._explaining.acquire(timeout=PATIENCE):
            raise StatementTimeout("The plans of other stream tables are still worked out.", "Reload the page.")
        try:
            self._client = self._client or pytrickle.connect(self._dsn)
            return self._client.explain(name)
        finally:
            self._explaining.release()


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen at one look: the state, a mark that changes with it, the name of the database, and the role."""

    status: Status
    mark: str
    database: str
    role: str


class Watch:
    """Tells the pages when there is something new to show, at the cost of one look for all of them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        self._found: Seen | PytrickleError | None = None
        self._rests_until = 0.0

    def look(self) -> Seen:
        """Return what was seen a moment ago, or is seen now; raise what kept the newest look from being taken."""
        with self._lock:
            began = monotonic()
            if self._found is None or began >= self._rests_until:
                self._found = self._look_anew()
                took = monotonic() - began
                self._rests_until = began + took + min(max(REST, RESTING * took), LONGEST_REST)
            if isinstance(self._found, PytrickleError):
                raise self._found
            return self._found

    def _look_anew(self) -> Seen | PytrickleError:
        try:
            found = self._database.report(_seen)
        except PytrickleError as error:
            if not isinstance(self._found, PytrickleError):
                log.error("%s", ended(str(error)))
            return error
        if isinstance(self._found, PytrickleError):
            log.info("The database answers again.")
        return found


def _seen(connection: psycopg.Connection) -> Seen:
    state = read_reports.status(connection)
    ((name, role),) = connection.execute("SELECT pg_catalog.current_database(), current_user").fetchall()
    return Seen(state, mark_of(state), name, role)


def _ageless(value: object) -> str:
    return "" if isinstance(value, timedelta) else str(value)


def mark_of(state: Status) -> str:
    """Return a short text that stays the same while nothing changes but ages."""
    told = asdict(state)
    lasting = {name: value for name, value in told.items() if name not in AGEING}
    written = json.dumps(lasting, default=_ageless, sort_keys=True)
    return hashlib.sha256(written.encode()).hexdigest()[:16]
