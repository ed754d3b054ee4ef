"""Refreshes asked for from SQL: requests that were filed, and transactions that wait for an answer."""

from collections.abc import Mapping
from dataclasses import dataclass

import psycopg
from sqlalchemy import BigInteger, any_, bindparam, delete, select
from sqlalchemy.dialects.postgresql import ARRAY

from pytrickle.catalog.tables import refresh_requests
from pytrickle.database import translate_errors, unless_locked
from pytrickle.database.statement import statement

# What came of a refresh: its action, its reason, and where it failed the sentence and the kind of the error.
Told = tuple[str, str, str | None, str | None]

FILED = statement(select(refresh_requests.c.request_id, refresh_requests.c.pgt_id))
SERVED = any_(bindparam("served", type_=ARRAY(BigInteger)))
FORGET = statement(delete(refresh_requests).where(refresh_requests.c.request_id == SERVED))
WAITING = "SELECT request_key, pgt_id FROM pgtrickle_private.waiting_requests()"
ANSWER = "SELECT pgtrickle_private.answer_request(%s, %s, %s, %s, %s)"
NO_TABLE, DRAIN = 0, -1
NOTHING: Told = ("SKIP", "it is not refreshed now", None, None)
# A sequence that was never called already has the value that its first call returns.
COUNTED = "last_value + is_called::integer FROM pgtrickle.pgt_refresh_calls"
CALLS = f"SELECT {COUNTED}"


@dataclass(frozen=True, slots=True)
class Requests:
    """What a tick is asked for: the numbers of stream tables by the number of a request, and by the key of a lock."""

    filed: Mapping[int, int]
    waiting: Mapping[int, int]

    @property
    def drains(self) -> bool:
        """Whether somebody is about to have ticks leave out everything."""
        return not {NO_TABLE, DRAIN}.isdisjoint(self.waiting.values())

    @property
    def pgt_ids(self) -> frozenset[int]:
        """All stream tables that somebody asked for."""
        return frozenset((*self.filed.values(), *self.waiting.values()))


def waiting(connection: psycopg.Connection) -> dict[int, int]:
    """Return who waits for which stream table.

    To be asked before the snapshot is taken: whoever waits by then has committed what he wants to see refreshed.
    """
    with translate_errors():
        unless_locked(connection, "SELECT pgtrickle_private.forget_answers()")
        return dict(connection.execute(WAITING, prepare=True).fetchall())


def filed(connection: psycopg.Connection) -> dict[int, int]:
    """Return the stream tables of the requests that are filed."""
    return dict(connection.execute(FILED).fetchall())


def answer(connection: psycopg.Connection, requests: Requests, results: Mapping[int, Told]) -> None:
    """Tell those who wait what came of each stream table, and forget what was filed."""
    for key, pgt_id in requests.waiting.items():
        if pgt_id == DRAIN:
            continue
        with translate_errors():
            connection.execute(ANSWER, (key, *results.get(pgt_id, NOTHING)))
    if requests.filed:
        unless_locked(connection, FORGET, {"served": list(requests.filed)})


def calls(connection: psycopg.Connection) -> int:
    """Return a number that moves when somebody begins to wait for a refresh."""
    with translate_errors():
        row = connection.execute(CALLS, prepare=True).fetchone()
    return int(row[0]) if row else 0
