"""Serving the console at an address until it is stopped."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Never

import uvicorn

from pytrickle.console.access import Access, is_wildcard
from pytrickle.console.app import application
from pytrickle.errors import ConfigError

ENDING = 3
BACKLOG = 128


def serve(dsn: str | None, where: tuple[str, int], allowed: tuple[str, ...], tell: Callable[[str], None]) -> None:
    """Serve the console until SIGTERM or Ctrl-C; `tell` gets the address to open, with the token if it wants one.

    Raises ConfigError where it cannot listen, or the connection string is malformed. The database may be out of reach.
    """
    host, _ = where
    with _listening(where) as listener:
        port = int(listener.getsockname()[1])
        access = Access.of(host, port, allowed)
        server = uvicorn.Server(configured(dsn, access))
        tell(address_of(host, port, access.token))
        with suppress(KeyboardInterrupt), _interrupted_by_sigterm():
            server.run(sockets=[listener])


def configured(dsn: str | None, access: Access) -> uvicorn.Config:
    """Return how the console is served."""
    return uvicorn.Config(
        application(dsn, access),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=ENDING,
    )


def address_of(host: str, port: int, token: str | None) -> str:
    """Return the address to open in a browser.

    >>> address_of("::1", 8080, None), address_of("db.example.com", 8080, "abc")
    ('http://[::1]:8080/', 'http://db.example.com:8080/?token=abc')
    """
    named = socket.gethostname() if is_wildcard(host) else host
    query = "" if token is None else f"?token={token}"
    return f"http://{f'[{named}]' if ':' in named else named}:{port}/{query}"


def _listening(where: tuple[str, int]) -> socket.socket:
    host, port = where
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server(where, family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigError(f"Nobody can listen on {host}:{port}: {error.strerror}.", "Choose another address.") from None


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does; the server passes on what ended it when it has ended."""

    def interrupt(_number: int, _frame: FrameType | None) -> Never:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
