"""Alerts posted to an address: once each, by the leader alone, again after a failure, and only where it is safe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import Empty, Queue
from threading import Thread
from typing import Any

import pytest

from pytrickle.cli.webhook import checked_url, posting
from pytrickle.errors import ConfigError
from tests.commands import commands
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

ALERT = "SELECT pgtrickle.alert('fuse', %s, %s, %s)"


@dataclass
class Receiver:
    """An HTTP server that takes what is posted; it answers with `codes` first, then with 204."""

    codes: list[int] = field(default_factory=list)
    taken: Queue[tuple[int, dict[str, Any]]] = field(default_factory=Queue)
    url: str = ""

    def next(self) -> tuple[int, str, bool]:
        """Return the answer that was given to the next alert, its subject, and whether it was its end."""
        code, alert = self.taken.get(timeout=20)
        return code, alert["subject"], alert["resolved"]


@contextmanager
def receiving(*codes: int) -> Iterator[Receiver]:
    receiver = Receiver(list(codes))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            code = receiver.codes.pop(0) if receiver.codes else 204
            self.send_response(code)
            if code == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()
            receiver.taken.put((code, {**json.loads(body), "path": self.path, "type": self.headers["Content-Type"]}))

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook?token=secret"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()


def test_each_beginning_and_end_is_posted_once_by_the_leader_and_again_after_a_failure(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "pytrickle.webhook")
    with receiving(503) as receiver, posting(db.dsn, receiver.url) as webhook:
        assert webhook is not None
        db.execute(ALERT, "public.a", True, "blown")
        with pytest.raises(Empty):
            receiver.taken.get(timeout=0.3)
        webhook.lead(True)
        assert [receiver.next(), receiver.next()] == [(503, "public.a", False), (204, "public.a", False)]
        db.execute(ALERT, "public.b", True, "blown")
        db.execute(ALERT, "public.a", False, "over")
        assert {receiver.next(), receiver.next()} == {(204, "public.b", False), (204, "public.a", True)}
        assert receiver.taken.empty()
    with receiving() as receiver, posting(db.dsn, receiver.url) as successor:
        assert successor is not None
        successor.lead(True)
        db.execute(ALERT, "public.b", False, "over")
        assert receiver.next() == (204, "public.b", True), "what was posted before is not posted by a successor"
        assert receiver.taken.empty()
    assert "HTTP 503" in caplog.text and "takes alerts again" in caplog.text
    assert "secret" not in caplog.text and caplog.text.count("does not take") == 1


def test_one_tick_posts_what_it_finds_before_it_ends(db: Database) -> None:
    command = commands(db.dsn)
    db.execute(ALERT, "public.a", True, "blown")
    with receiving() as receiver:
        assert command("run", "--once", "--webhook-url", receiver.url).exit_code == 0
        assert receiver.next() == (204, "public.a", False)
        # There is no such stream table: so the tick finds that it is over.
        assert command("run", "--once", "--webhook-url", receiver.url).exit_code == 0
        assert receiver.next() == (204, "public.a", True)
        assert command("run", "--once", "--webhook-url", receiver.url).exit_code == 0
        assert receiver.taken.empty()
    refused = command("run", "--once", "--webhook-url", "http://example.com/alerts")
    assert (refused.exit_code, "unencrypted" in refused.stderr) == (1, True)


def test_what_is_not_wanted_is_not_repeated_and_no_redirect_is_followed(db: Database) -> None:
    for name in ("public.a", "public.b"):
        db.execute(ALERT, name, True, "blown")
    with receiving(400, 302) as receiver, posting(db.dsn, receiver.url) as webhook:
        assert webhook is not None
        webhook.lead(True)
        answers = [receiver.taken.get(timeout=20) for _ in range(3)]
    assert [(code, alert["subject"]) for code, alert in answers] == [
        *((400, "public.a"), (302, "public.b"), (204, "public.b"))
    ]
    assert {alert["path"] for _, alert in answers} == {"/hook?token=secret"}
    assert {alert["type"] for _, alert in answers} == {"application/json"}


@pytest.mark.parametrize(
    "url", ["http://example.com/x", "http://10.0.0.1/", "ftp://example.com/", "file:///etc/passwd"]
)
def test_alerts_leave_the_machine_only_encrypted_unless_it_is_allowed(url: str) -> None:
    with pytest.raises(ConfigError):
        checked_url(url, insecure=False)


def test_an_address_of_this_machine_or_by_https_is_taken() -> None:
    for url in ("https://example.com/x", "http://localhost:1/x", "http://[::1]:1/", "http://127.0.0.2/"):
        assert checked_url(url, insecure=False) == url
    assert checked_url("http://example.com/", insecure=True)


def test_a_tick_measures_at_once_and_then_seldom(db: Database) -> None:
    db.execute("CREATE TABLE orders (id int)")
    db.execute("SELECT pgtrickle.set_alert_limits()")
    opened = "SELECT count(*) FROM pgtrickle.alerts() WHERE closed_at IS NULL"
    with local_client(db.dsn) as (client, _):
        db.execute("SELECT pgtrickle.advance_watermark('orders', now() - interval '1 hour')")
        client.tick()
        assert db.value(opened) == 1
        db.execute("SELECT pgtrickle.advance_watermark('orders', now())")
        client.tick()
        assert db.value(opened) == 1, "it was measured a moment ago"
        client._ticker.measure_from = 0
        client.tick()
        assert db.value(opened) == 0
