"""A small HTTP server beside the refresher: metrics for Prometheus, and whether the process is alive and ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from pytrickle.errors import ConfigError

PLAIN = "text/plain; charset=utf-8"
Answer = tuple[int, str, bytes]


@contextmanager
def listening(
    where: tuple[str, int], registry: CollectorRegistry, is_alive: Callable[[], bool], is_ready: Callable[[], bool]
) -> Iterator[int]:
    """Answer GET /metrics, /healthz and /readyz for the length of the block; yield the port.

    Raises ConfigError where it cannot listen.
    """
    answers: dict[str, Callable[[], Answer]] = {
        "/metrics": lambda: (200, CONTENT_TYPE_LATEST, generate_latest(registry)),
        "/healthz": lambda: _whether(is_alive(), "alive", "the main loop has stopped"),
        "/readyz": lambda: _whether(is_ready(), "ready", "not connected to the database"),
    }
    try:
        server = ThreadingHTTPServer(where, _handler(answers))
    except OSError as error:
        host, port = where
        raise ConfigError(f"Nobody can listen on {host}:{port}: {error.strerror}.", "Choose another address.") from None
    server.daemon_threads = True
    Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def _whether(holds: bool, yes: str, no: str) -> Answer:
    return (200, PLAIN, f"{yes}\n".encode()) if holds else (503, PLAIN, f"{no}\n".encode())


def _handler(answers: dict[str, Callable[[], Answer]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            """Answer one request."""
            self.wfile.write(self._head())

        def do_HEAD(self) -> None:
            """Answer without the text, as some load balancers ask."""
            self._head()

        def _head(self) -> bytes:
            """Write the head of an answer, and return the rest."""
            answer = answers.get(self.path.partition("?")[0])
            code, kind, body = answer() if answer else (404, PLAIN, b"There are /metrics, /healthz and /readyz.\n")
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            return body

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: scrapes come all the time."""

    return Handler
