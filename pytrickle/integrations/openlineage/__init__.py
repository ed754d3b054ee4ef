"""OpenLineage: an event for the beginning and the end of each refresh, sent beside the refresher's work."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from logging import getLogger
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Protocol

import psycopg
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import RunEvent

from pytrickle.config import Settings
from pytrickle.database import connect, translate_errors
from pytrickle.errors import PytrickleError
from pytrickle.integrations.openlineage.events import events
from pytrickle.integrations.openlineage.facts import Facts, facts
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.lineage import Lineage
from pytrickle.plan.lineage import lineage as trace
from pytrickle.refresh.values import RefreshResult

log = getLogger("pytrickle.lineage")
# So many events wait where nobody takes them; then the refreshes after that are not told of.
MOST = 10_000
# How long the end waits for what was not sent yet, in seconds.
GRACE = 5.0
# A refresher waits for the look into the catalog, so that may not take long.
PATIENCE = "SET statement_timeout = '5s'"


class Refreshing(Protocol):
    """What refreshes: a client of pytrickle."""

    settings: Settings

    def known_shape(self, pgt_id: int) -> Analysis | None:
        """Return how a stream table's query is understood, if it was refreshed by this client."""


@contextmanager
def lineage(
    client: Refreshing, receiver: OpenLineageClient | None = None, namespace: str | None = None
) -> Iterator[Callable[[RefreshResult], None]]:
    """Yield what sends events of the results that it is told, as `on_result` of `tick` and `run` is.

    `receiver` is the client of OpenLineage, without one that of its variables and files; `namespace` that of the jobs,
    without one OPENLINEAGE_NAMESPACE, else `default`. What cannot be sent is logged, and never fails a refresh.
    """
    sender = Sender(receiver or OpenLineageClient())
    thread = Thread(target=sender.run, name="lineage", daemon=True)
    thread.start()
    teller = Teller(client, sender, namespace or os.environ.get("OPENLINEAGE_NAMESPACE", "default"))
    try:
        yield teller.tell
    finally:
        teller.close()
        sender.ended.set()
        thread.join(GRACE)
        if receiver is None:
            sender.receiver.close(GRACE)


@dataclass(slots=True)
class Sender:
    """Sends events in the order in which they were put, from a thread of its own."""

    receiver: OpenLineageClient
    waiting: Queue[RunEvent] = field(default_factory=lambda: Queue(MOST))
    ended: Event = field(default_factory=Event)
    failing: bool = False

    def put(self, event: RunEvent) -> None:
        """Have an event sent, unless too many wait."""
        try:
            self.waiting.put_nowait(event)
        except Full:
            self._complain("Events of OpenLineage are lost: %s wait to be sent.", MOST)

    def run(self) -> None:
        """Send until the end, and then what is left."""
        while not (self.ended.is_set() and self.waiting.empty()):
            try:
                event = self.waiting.get(timeout=0.2)
            except Empty:
                continue
            try:
                self.receiver.emit(event)
                self.failing = False
            except Exception as error:  # whatever the transport raises: requests', Kafka's, its own
                self._complain("An event of OpenLineage could not be sent: %s.", type(error).__name__)

    def _complain(self, message: str, what: object) -> None:
        if not self.failing:
            log.warning(message, what)
        self.failing = True


@dataclass(slots=True)
class Teller:
    """Reads what the catalog says right after a refresh, and puts its events into the sender's queue."""

    client: Refreshing
    sender: Sender
    namespace: str
    connection: psycopg.Connection | None = None

    def tell(self, result: RefreshResult) -> None:
        """Tell of one result; skips and refreshes without changes are none."""
        if result.action in ("SKIP", "NO_DATA"):
            return
        try:
            with translate_errors():
                found = facts(self._connected(), result.stream_table)
        except PytrickleError as error:
            log.warning("OpenLineage is not told of %s: %s.", result.stream_table, error.kind)
            return
        if found:
            for event in events(result, found, self._lineage(found), self.namespace):
                self.sender.put(event)

    def close(self) -> None:
        """Close the connection."""
        if self.connection:
            self.connection.close()

    def _connected(self) -> psycopg.Connection:
        if self.connection is None or self.connection.closed or self.connection.broken:
            self.connection = connect(self.client.settings.dsn, role="lineage")
            self.connection.execute(PATIENCE)
        return self.connection

    def _lineage(self, found: Facts) -> Lineage | None:
        shape = self.client.known_shape(found.pgt_id)
        if shape is None or shape.query is None:
            return None
        return trace(shape.query, [name for name, _ in shape.body.columns])
