"""The command that keeps stream tables fresh until it is stopped: run."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from logging import getLogger
from threading import Timer
from time import sleep
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from pytrickle.cli import values
from pytrickle.cli.command import Engine, Invocation, command, fail_if_any_failed
from pytrickle.cli.console import show
from pytrickle.cli.documents import show_json
from pytrickle.cli.log import LogFormat, LogLevel, logged
from pytrickle.cli.observer import Observer, Wanted, observed
from pytrickle.cli.remedies import on_the_command_line
from pytrickle.cli.service import Service, serving
from pytrickle.cli.show import render
from pytrickle.cli.webhook import posting, posting_afterwards
from pytrickle.errors import ConnectionLost, PytrickleError, RestoreUnderWay
from pytrickle.readable import ended

if TYPE_CHECKING:
    from pytrickle.client.client import Client
    from pytrickle.refresh.values import RefreshResult

app = typer.Typer()
log = getLogger("pytrickle.run")

SIGNALS = (signal.SIGTERM, signal.SIGINT)
GRACE = 3.0
LOOK_EVERY = 1.0
STOPPED = "Stopped; a refresh that was under way has changed nothing unless it had committed."
# They tell of results, which --json prints to stdout.
RESULTS = "pytrickle.refresh"


Once = Annotated[bool, typer.Option("--once", help="Do one tick, print its results, and stop.")]
LogForm = Annotated[
    LogFormat | None, typer.Option("--log-format", help="How a line is written (default: text; json with --json).")
]
LogFrom = Annotated[LogLevel, typer.Option("--log-level", help="What is written, and all that matters more.")]
MetricsListen = Annotated[
    str | None,
    typer.Option(
        "--metrics-listen", metavar="ADDRESS", help="Serve /metrics, /healthz, /readyz, such as at 127.0.0.1:9187."
    ),
]
Otel = Annotated[
    bool, typer.Option("--otel", help="Send traces and metrics by OTLP, as OTEL_EXPORTER_OTLP_ENDPOINT etc. say.")
]
OpenLineage = Annotated[
    bool, typer.Option("--openlineage", help="Send events of OpenLineage, as OPENLINEAGE_URL etc. say.")
]
WebhookUrl = Annotated[
    str | None,
    typer.Option(
        "--webhook-url", metavar="URL", envvar="PYTRICKLE_WEBHOOK_URL", help="Also POST each alert there, as JSON."
    ),
]
WebhookInsecure = Annotated[
    bool, typer.Option("--webhook-insecure", help="Allow a webhook on another machine without https.")
]
StatisticsEvery = Annotated[
    timedelta | None,
    typer.Option(parser=values.duration, metavar="DURATION", help="Also write a summary so often, such as 10m."),
]


@command(app, "run", example="pytrickle run --log-format logfmt")
def run(
    invocation: Invocation,
    once: Once = False,
    engine: Engine = None,
    log_format: LogForm = None,
    log_level: LogFrom = LogLevel.INFO,
    metrics_listen: MetricsListen = None,
    otel: Otel = False,
    openlineage: OpenLineage = False,
    webhook_url: WebhookUrl = None,
    webhook_insecure: WebhookInsecure = False,
    statistics_every: StatisticsEvery = None,
) -> None:
    """Refresh what is due until stopped. Loaders wake it; SIGTERM or Ctrl-C stops it, a second one at once.

    Each event is one line on stderr: a refresh that found changes, a skip for a new reason, a failure, the beginning
    and the end of an outage. With --json the results go to stdout, a JSON document each. A lost server is waited for.
    Of several on one database one leads; the others stand by, and one of them takes over when it ends. Under systemd
    it reports that it is ready and alive.
    """
    wanted = Wanted(metrics_listen, otel, openlineage)
    form = log_format or (LogFormat.JSON if invocation.as_json else LogFormat.TEXT)
    if once:
        with posting_afterwards(invocation.dsn, webhook_url, insecure=webhook_insecure):
            results = _tick_once(invocation, engine, wanted)
        fail_if_any_failed(results)
        return
    shown = [RESULTS] if invocation.as_json else []
    with logged(form, log_level, *shown), serving() as service, _failing_in_one_line():  # noqa: SIM117
        with (
            _restored_client(invocation, engine) as client,
            observed(client, service, wanted) as observer,
            posting(invocation.dsn, webhook_url, insecure=webhook_insecure) as webhook,
            _stopped_by_signals(client.stop, service) as listen,
        ):
            observer.on_result.append(_printer(listen, invocation.as_json))
            if webhook:
                observer.on_leader.append(webhook.lead)
            _refresh_until_stopped(client, observer, service, statistics_every)


def _refresh_until_stopped(
    client: Client, observer: Observer, service: Service, statistics_every: timedelta | None
) -> None:
    client.run(
        on_result=observer.result,
        on_error=observer.error,
        on_leader=observer.lead,
        on_beat=service.beat,
        statistics_every=statistics_every,
    )


@contextmanager
def _restored_client(invocation: Invocation, engine: Engine) -> Iterator[Client]:
    """Open a client for the length of the block, as soon as a restore, or an outage of the server, is over.

    Where nobody answers at first, the address is perhaps wrong, and the error is raised.
    """
    told = ""
    with ExitStack() as opened:
        while True:
            try:
                client = opened.enter_context(invocation.client(engine=engine))
                break
            except (RestoreUnderWay, ConnectionLost) as error:
                lost = isinstance(error, ConnectionLost)
                if lost and not told and _nobody_answers(error):
                    raise
                if str(error) != told:
                    then = "Trying again until that is over." if lost else error.hint
                    log.warning("%s %s", ended(str(error)), then)
                told = str(error)
                sleep(LOOK_EVERY)
        yield client


def _nobody_answers(error: PytrickleError) -> bool:
    """Say whether no server was there, rather than one that takes no connection now or has ended one."""
    return error.__cause__ is None and error.hint == ConnectionLost.default_hint


@contextmanager
def _failing_in_one_line() -> Iterator[None]:
    """Write an error that ends the command into its log, and exit with 1."""
    try:
        yield
    except PytrickleError as error:
        log.error("%s %s", ended(str(error)), on_the_command_line(error.hint or ""))
        raise typer.Exit(1) from None


def _printer(listen: Callable[[], None], as_json: bool) -> Callable[[RefreshResult], None]:
    """Return what listens for signals anew after each result, and prints those that are events."""
    skipped: dict[str, str] = {}

    def on_result(result: RefreshResult) -> None:
        listen()
        known = skipped.pop(result.stream_table, None)
        if result.action == "SKIP":
            skipped[result.stream_table] = result.reason
        if as_json and result.action != "NO_DATA" and (result.action, known) != ("SKIP", result.reason):
            show_json(result, indent=None)

    return on_result


def _tick_once(invocation: Invocation, engine: Engine, wanted: Wanted) -> list[RefreshResult]:
    results: list[RefreshResult] = []

    def on_result(result: RefreshResult) -> None:
        results.append(result)
        if invocation.as_json:
            show_json(result, indent=None)
        else:
            show(render.result(result))

    with invocation.client(engine=engine) as client, observed(client, Service(None), wanted) as observer:
        observer.on_result.append(on_result)
        client.run(once=True, on_result=observer.result)
    return results


@contextmanager
def _stopped_by_signals(stop: Callable[[], None], service: Service) -> Iterator[Callable[[], None]]:
    """Let the first SIGTERM or Ctrl-C end the block after the refresh under way, and a second one at once.

    What cannot be interrupted, such as the start of a Java process in another thread, gets a moment to end; then the
    process ends without it.

    Yields what listens for them anew: Spark puts its own handler of Ctrl-C in place of ours when it starts.
    """
    received: list[int] = []
    last_resort = Timer(GRACE, _end_process)
    last_resort.daemon = True

    def ask_to_stop(number: int, _frame: FrameType | None) -> None:
        if received:
            # A third one must not interrupt what ends already.
            for each in SIGNALS:
                signal.signal(each, signal.SIG_IGN)
            last_resort.start()
            raise KeyboardInterrupt
        received.append(number)
        log.info("Stopping after the refresh under way; a second signal stops at once.")
        service.tell("STOPPING=1")
        stop()

    def listen() -> None:
        for number in SIGNALS:
            signal.signal(number, ask_to_stop)

    previous = {number: signal.getsignal(number) for number in SIGNALS}
    listen()
    try:
        yield listen
        log.info("Stopped.")
    except KeyboardInterrupt:
        stop()
        log.info(STOPPED)
    finally:
        last_resort.cancel()
        for number, handler in previous.items():
            signal.signal(number, handler)


def _end_process() -> None:
    """End the process as a kill would, which no refresh minds: what had not committed has changed nothing."""
    log.info(STOPPED)
    sys.stdout.flush()
    os._exit(0)
