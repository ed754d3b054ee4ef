"""An HTTP server that keeps what is posted to it: a collector, as far as a test needs one."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Receiver:
    """Where it listens, and the bodies that came, by path."""

    address: str
    bodies: list[tuple[str, bytes]] = field(default_factory=list)

    def at(self, path: str) -> list[bytes]:
        return [body for where, body in self.bodies if where == path]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Take whatever is posted, for the length of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.bodies.append((self.path, gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}")
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
