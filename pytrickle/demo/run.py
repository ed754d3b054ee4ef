"""The demo from beginning to end: server, loaders, daemon, screen, checks and verdict."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import FrameType

from rich.console import Console
from rich.live import Live

import pytrickle
from pytrickle.client.client import Client
from pytrickle.database import connect
from pytrickle.demo.checks import Observer, Tally, broken_promises
from pytrickle.demo.loaders import running_loaders
from pytrickle.demo.reports import MODES, create_reports, drop_reports, report_name
from pytrickle.demo.screen import live_view, plain_lines, summary
from pytrickle.demo.server import postgres_server
from pytrickle.demo.shop import Shop
from pytrickle.refresh.values import RefreshResult

LOOK_EVERY = timedelta(seconds=0.5)
SPEAK_EVERY = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the demo found out."""

    tallies: Mapping[str, Tally]
    refreshes: Mapping[str, int]
    verified: Mapping[str, bool]
    failures: Sequence[str]

    @property
    def broken(self) -> tuple[str, ...]:
        """Return one sentence for each guarantee that did not hold."""
        return broken_promises(self.tallies, self.verified, self.failures)


def run_demo(dsn: str | None, duration: timedelta, json: bool) -> int:
    """Play the e-commerce case for `duration` after Spark has started, and return the exit code.

    Without `dsn` it runs on an embedded PostgreSQL that is gone afterwards; with one, in the schema pytrickle_demo of
    that database, which is dropped afterwards. With `json` the result is written to standard output as JSON and all
    progress to standard error. The exit code is 1 if a guarantee was broken or the demo proved nothing, else 0.
    """
    progress = Console(stderr=json)
    with _signals_as_interrupts(), ExitStack() as stack:
        if dsn is None:
            progress.print("Starting an embedded PostgreSQL …")
            dsn = stack.enter_context(postgres_server()).dsn
        outcome = _play(dsn, duration, progress)
    if json:
        Console().print_json(data=as_json(outcome))
    else:
        progress.print(summary(outcome.tallies, outcome.refreshes, outcome.verified))
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
    return {"reports": reports, "broken": list(outcome.broken)}


def _play(dsn: str, duration: timedelta, progress: Console) -> Outcome:
    pytrickle.install(dsn)
    with connect(dsn, role="demo") as connection, pytrickle.connect(dsn) as client:
        create_reports(connection, client)
        try:
            observer = Observer(connection)
            refreshes: Counter[str] = Counter()
            failures: list[str] = []

            def count_and_look(result: RefreshResult) -> None:
                if result.error is not None:
                    failures.append(f"{result.stream_table} failed: {result.error}")
                elif result.action not in ("NO_DATA", "SKIP"):
                    refreshes[result.stream_table] += 1
                    observer.look()

            with progress.status("Starting Spark …"):
                client.refresh(report_name("none"))
            with _daemon(client, count_and_look) as check_daemon:
                _load_and_show(dsn, duration, observer, check_daemon, progress)
            with progress.status("Verifying each report against its defining query …"):
                verified = {mode: client.verify(report_name(mode)).matches for mode in MODES}
            return Outcome(observer.tallies(), refreshes, verified, failures)
        finally:
            drop_reports(connection, client)


def _load_and_show(
    dsn: str, duration: timedelta, observer: Observer, check_daemon: Callable[[], None], progress: Console
) -> None:
    """Let both loaders work for `duration` while the screen follows them; whatever fails in between ends it."""
    shop = Shop(opened_at=datetime.now(UTC))
    closing = shop.opened_at + duration
    # A client of its own: the daemon's is busy in its thread. It only reads, so it never starts Spark.
    with pytrickle.connect(dsn) as reader, running_loaders(dsn, shop) as check_loaders, _display(progress) as show:
        while (left := closing - datetime.now(UTC)) > timedelta(0):
            check_daemon()
            check_loaders()
            observer.look()
            show(reader, observer, left)
            time.sleep(LOOK_EVERY.total_seconds())


@contextmanager
def _display(progress: Console) -> Iterator[Callable[[Client, Observer, timedelta], None]]:
    """Yield what shows the present state: in place on a terminal, every five seconds in plain lines elsewhere."""
    if progress.is_terminal:
        with Live(console=progress, auto_refresh=False) as live:
            yield lambda reader, observer, left: live.update(
                live_view(reader.status(), observer.tallies(), left), refresh=True
            )
        return
    spoken: list[timedelta] = []

    def speak(reader: Client, observer: Observer, left: timedelta) -> None:
        if not spoken or spoken[-1] - left >= SPEAK_EVERY:
            spoken.append(left)
            for line in plain_lines(reader.status(), observer.tallies(), left):
                progress.print(line, highlight=False, soft_wrap=True)

    yield speak


@contextmanager
def _daemon(client: Client, on_result: Callable[[RefreshResult], None]) -> Iterator[Callable[[], None]]:
    """Run the refresher in a thread until the block ends; yields a function that raises what it died of."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="refresher") as executor:
        refresher = executor.submit(client.run, on_result=on_result)

        def check() -> None:
            if refresher.done():
                refresher.result()

        try:
            yield check
        finally:
            client.stop()
        refresher.result()


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
