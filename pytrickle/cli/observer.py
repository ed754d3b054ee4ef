"""Who is told what a running refresher does: the service manager, the metrics, and what prints results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from logging import getLogger
from typing import TYPE_CHECKING

from pytrickle.cli.service import Service
from pytrickle.cli.values import address
from pytrickle.errors import PackageMissing, PytrickleError

if TYPE_CHECKING:
    from pytrickle.client.client import Client
    from pytrickle.refresh.values import RefreshResult

log = getLogger("pytrickle.run")
MISSING = "Install it: pip install 'pytrickle-postgres[{}]'."


@dataclass(slots=True)
class Observer:
    """Passes on what a refresher tells; it is ready from the time at which it knows its role, but in an outage."""

    service: Service
    on_result: list[Callable[[RefreshResult], None]] = field(default_factory=list)
    on_leader: list[Callable[[bool], None]] = field(default_factory=list)
    is_ready: bool = False
    port: int | None = None

    def result(self, result: RefreshResult) -> None:
        """Pass on what came of a stream table."""
        self.is_ready = True
        for tell in self.on_result:
            tell(result)

    def lead(self, leads: bool) -> None:
        """Pass on whether it leads."""
        self.is_ready = True
        self.service.ready("Refreshing." if leads else "Standing by.")
        for tell in self.on_leader:
            tell(leads)

    def error(self, _: PytrickleError) -> None:
        """Take note of an outage."""
        self.is_ready = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """Who is to be told: whoever scrapes an address, a collector of OpenTelemetry, one of OpenLineage."""

    listen: str | None = None
    otel: bool = False
    openlineage: bool = False


@contextmanager
def observed(client: Client, service: Service, wanted: Wanted) -> Iterator[Observer]:
    """Yield the observer; for the length of the block it tells whoever is to be told."""
    observer = Observer(service)
    with ExitStack() as held:
        if wanted.listen is not None:
            held.enter_context(_serving(observer, client, wanted.listen))
        if wanted.otel:
            held.enter_context(_exporting(observer, client))
        if wanted.openlineage:
            held.enter_context(_lineage(observer, client))
        yield observer


@contextmanager
def _serving(observer: Observer, client: Client, listen: str) -> Iterator[None]:
    try:
        from prometheus_client import CollectorRegistry

        from pytrickle.cli.listen import listening
        from pytrickle.cli.metrics import Catalog, Refreshes, seen_by
    except ImportError as error:
        raise PackageMissing("Metrics need prometheus-client.", MISSING.format("metrics")) from error
    registry = CollectorRegistry()
    refreshes = Refreshes(registry)
    registry.register(Catalog(lambda: seen_by(client)))
    observer.on_result.append(refreshes.count)
    observer.on_leader.append(lambda leads: refreshes.leader.set(leads))
    with listening(address(listen), registry, observer.service.is_alive, lambda: observer.is_ready) as port:
        observer.port = port
        log.info("Metrics are served on port %s.", port)
        yield


@contextmanager
def _exporting(observer: Observer, client: Client) -> Iterator[None]:
    try:
        from pytrickle.cli.metrics import seen_by
        from pytrickle.cli.telemetry import exporting
    except ImportError as error:
        raise PackageMissing("Spans need OpenTelemetry.", MISSING.format("otel")) from error
    with exporting(lambda: seen_by(client)) as measures:
        observer.on_result.append(measures.count)
        observer.on_leader.append(measures.lead)
        yield


@contextmanager
def _lineage(observer: Observer, client: Client) -> Iterator[None]:
    try:
        from pytrickle.integrations.openlineage import lineage
    except ImportError as error:
        raise PackageMissing("Lineage needs openlineage-python.", MISSING.format("openlineage")) from error
    with lineage(client) as tell:
        observer.on_result.append(tell)
        yield
