"""The demo from beginning to end: server, loaders, daemon, screen, checks and verdict."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import TypeAlias

import psycopg
from rich.console import Console
from rich.live import Live

import pytrickle
from pytrickle.client.client import Client
from pytrickle.compute.spark.java import find_java, require_spark
from pytrickle.config import EngineName
from pytrickle.database import connect
from pytrickle.demo.checks import Observer, Tally, broken_promises, proves_nothing_yet
from pytrickle.demo.jobs import Job, job_of
from pytrickle.demo.loaders import running_loaders
from pytrickle.demo.reports import MODES, create_reports, drop_reports, report_name
from pytrickle.demo.screen import MakeTable, Scene, live_view, plain_lines, summary
from pytrickle.demo.server import postgres_server
from pytrickle.demo.shop import Shop
from pytrickle.errors import PytrickleError
from pytrickle.refresh.values import RefreshResult

LOOK_EVERY = timedelta(seconds=0.5)
REFRESH_EVERY = timedelta(seconds=0.25)
SPEAK_EVERY = timedelta(seconds=5)
# So much longer it may take until the reports have shown what they are to show: where refreshes take long, few of them
# begin while the watermarks agree, which is for two of twelve seconds.
EXTRA = timedelta(minutes=3)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the demo found out."""

    tallies: Mapping[str, Tally]
    refreshes: Mapping[str, int]
    verified: Mapping[str, bool]
    failures: Sequence[str]
    engines: Mapping[str, int]

    @property
    def broken(self) -> tuple[str, ...]:
        """Return one sentence for each guarantee that did not hold."""
        return broken_promises(self.tallies, self.verified, self.failures)


@dataclass(frozen=True, slots=True)
class Screen:
    """Where the demo shows what goes on, and what makes its tables."""

    console: Console
    columns: MakeTable


def run_demo(
    dsn: str | None, duration: timedelta, json: bool, columns: MakeTable, engine: EngineName = EngineName.SPARK
) -> int:
    """Play the e-commerce case for `duration` after the first refresh, and return the exit code.

    It goes on for up to three minutes longer where it has not shown yet what it is to show. Raises PackageMissing or
    JavaMissing before anything is started where Spark is to compute.

    Without `dsn` it runs on an embedded PostgreSQL that is gone afterwards; with one, in the schema pytrickle_demo of
    that database, which is dropped afterwards, and it refreshes nothing else there. With `json` the result is written
    to standard output as JSON and all progress to standard error. `columns` makes the tables. The exit code is 1 if a
    guarantee was broken or the demo proved nothing, else 0.
    """
    progress = Console(stderr=json)
    if engine is EngineName.SPARK:
        require_spark()
        find_java()
    with _signals_as_interrupts(), ExitStack() as stack:
        refresh = _refresh_reports if dsn is not None else _refresh_all
        if dsn is None:
            progress.print("Starting an embedded PostgreSQL …")
            dsn = stack.enter_context(postgres_server()).dsn
        outcome = _play(dsn, duration, Screen(progress, columns), engine, refresh)
    if json:
        Console().print_json(data=as_json(outcome))
    else:
        progress.print(summary(columns, outcome.tallies, outcome.refreshes, outcome.verified))
    for sentence in outcome.broken:
        progress.print(f"BROKEN: {sentence}.", style="bold red")
    return 1 if outcome.broken else 0


def as_json(outcome: Outcome) -> dict[str, object]:
    """Return the outcome as plain values."""
    reports = {
        mode: {
            "refreshes": outcome.refreshes.get(report_name(mode), 0),
            "checks": tally.looks,
            "checks_with_incomplete_orders": tally.looks_incomplete,
            "most_incomplete_orders": tally.worst,
            "mean_age_seconds": round(tally.mean_age.total_seconds(), 3) if tally.mean_age is not None else None,
            "verified": outcome.verified[mode],
        }
        for mode, tally in outcome.tallies.items()
    }
    return {"reports": reports, "refreshes_by_engine": dict(outcome.engines), "broken": list(outcome.broken)}


def _play(dsn: str, duration: timedelta, screen: Screen, engine: EngineName, refresh: "Refresh") -> Outcome:
    pytrickle.install(dsn)
    with connect(dsn, role="demo") as connection, pytrickle.connect(dsn, engine=engine) as client:
        create_reports(connection, client)
        try:
            seen = Seen(Observer(connection), connection)
            with _refresher(refresh, client, seen) as check_refresher:
                _load_and_show(dsn, duration, seen, check_refresher, screen)
            with screen.console.status("Verifying each report against its defining query …"):
                verified = {mode: client.verify(report_name(mode)).matches for mode in MODES}
            refreshes, engines = (
                Counter(job.stream_table for job in seen.jobs),
                Counter(job.engine for job in seen.jobs),
            )
            return Outcome(seen.observer.tallies(), refreshes, verified, seen.failures, engines)
        finally:
            drop_reports(connection, client)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the refresher did so far, and what the reports showed after it."""

    observer: Observer
    connection: psycopg.Connection
    jobs: list[Job] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def note(self, result: RefreshResult) -> None:
        """Take a result down, and look at the reports after a refresh that did something."""
        if result.error is not None:
            self.failures.append(f"{result.stream_table} failed: {result.error}")
        elif result.action not in ("NO_DATA", "SKIP"):
            self.jobs.append(job_of(result, self.connection))
            self.observer.look()

    def scene(self, reader: Client, left: timedelta | None) -> Scene:
        """Return all there is to show at this moment."""
        return Scene(reader.status(), self.observer.tallies(), tuple(self.jobs), left)


Refresh: TypeAlias = Callable[[Client, Seen, threading.Event], None]
"""What refreshes until it is stopped."""


def _load_and_show(
    dsn: str, duration: timedelta, seen: Seen, check_refresher: Callable[[], None], screen: Screen
) -> None:
    """Let both loaders work for `duration` while the screen follows them; whatever fails in between ends it."""
    shop = Shop(opened_at=datetime.now(UTC))
    left: timedelta | None = None
    closing = shop.opened_at
    # A client of its own: the refresher's is busy in its thread. It only reads, so it never starts Spark.
    with pytrickle.connect(dsn) as reader, running_loaders(dsn, shop) as check_loaders, _display(screen) as show:
        while left is None or left > timedelta(0) or (left > -EXTRA and proves_nothing_yet(seen.observer.tallies())):
            check_refresher()
            check_loaders()
            seen.observer.look()
            show(seen.scene(reader, left))
            time.sleep(LOOK_EVERY.total_seconds())
            if left is None and not (seen.jobs or seen.failures):
                continue
            now = datetime.now(UTC)
            if left is None:
                closing = now + duration
            left = closing - now


@contextmanager
def _display(screen: Screen) -> Iterator[Callable[[Scene], None]]:
    """Yield what shows the present state: in place on a terminal, every five seconds in plain lines elsewhere."""
    if screen.console.is_terminal:
        with Live(console=screen.console, auto_refresh=False) as live:
            yield lambda scene: live.update(live_view(scene, screen.columns), refresh=True)
        return
    spoken: list[tuple[float, int]] = []

    def speak(scene: Scene) -> None:
        last, told = spoken[-1] if spoken else (-SPEAK_EVERY.total_seconds(), 0)
        if time.monotonic() - last >= SPEAK_EVERY.total_seconds():
            spoken.append((time.monotonic(), len(scene.jobs)))
            for line in plain_lines(scene, told):
                screen.console.print(line, highlight=False, soft_wrap=True)

    yield speak


@contextmanager
def _refresher(refresh: Refresh, client: Client, seen: Seen) -> Iterator[Callable[[], None]]:
    """Refresh in a thread until the block ends; yields a function that raises what it died of."""
    stop = threading.Event()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="refresher") as executor:
        refresher = executor.submit(refresh, client, seen, stop)

        def check() -> None:
            if refresher.done():
                refresher.result()

        try:
            yield check
        finally:
            stop.set()
            client.stop()
        refresher.result()


def _refresh_all(client: Client, seen: Seen, stop: threading.Event) -> None:
    """Refresh as a daemon does, several at the same time, until the client is stopped."""
    if not stop.is_set():
        client.run(on_result=seen.note)


def _refresh_reports(client: Client, seen: Seen, stop: threading.Event) -> None:
    """Refresh each report again and again, and no other stream table: the database may be somebody's own."""
    while not stop.wait(REFRESH_EVERY.total_seconds()):
        for mode in MODES:
            try:
                seen.note(client.refresh(report_name(mode), respect_gate=True))
            except PytrickleError as error:
                # Somebody's own refresher may be at the same report.
                if not error.retryable:
                    seen.failures.append(f"{report_name(mode)} failed: {error}")


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """Let a polite request to end (SIGTERM, a closed terminal) clean up as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
