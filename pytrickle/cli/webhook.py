"""Posting alerts to an address: each beginning and each end of an incident once, beside the ticks, while this leads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from ipaddress import ip_address
from logging import getLogger
from threading import Event, Thread
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

import psycopg
from psycopg.rows import dict_row

from pytrickle.config import Settings
from pytrickle.database import connect, translate_errors
from pytrickle.errors import ConfigError, PytrickleError
from pytrickle.readable import ended

log = getLogger("pytrickle.webhook")
TIMEOUT = 10.0
LISTEN_FOR = 1.0
LONGEST_PAUSE = 300.0
# Whoever names an address for the first time is not told of what happened long before.
PENDING = """
SELECT alert_id, pgtrickle_private.readable_text(kind) AS kind, pgtrickle_private.readable_text(subject) AS subject,
    pgtrickle_private.readable_text(group_name) AS "group", since,
    pgtrickle_private.readable_text(sentence) AS sentence, opening_posted_at IS NOT NULL AS resolved,
    closed_at
FROM pgtrickle.pgt_alerts
WHERE opening_posted_at IS NULL AND opened_at > now() - interval '1 day'
    OR opening_posted_at IS NOT NULL AND closing_posted_at IS NULL AND closed_at > now() - interval '1 day'
ORDER BY alert_id
"""
POSTED = """
UPDATE pgtrickle.pgt_alerts SET
    opening_posted_at = coalesce(opening_posted_at, clock_timestamp()),
    closing_posted_at = CASE WHEN %(resolved)s THEN clock_timestamp() END
WHERE alert_id = %(alert_id)s
"""


def checked_url(url: str, insecure: bool) -> str:
    """Return the address if alerts may be posted there: by https, or on this machine, or if plain http was allowed."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("The webhook is no address of http or https.", "Write it like https://example.com/alerts.")
    if parts.scheme == "http" and not (insecure or _is_loopback(parts.hostname)):
        hint = "Use https, or allow it with --webhook-insecure."
        raise ConfigError(f"Alerts would be posted to {parts.hostname} unencrypted.", hint)
    return url


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Refused(HTTPRedirectHandler):
    """Follows no redirect: it may lead to another host, or to one without encryption."""

    def redirect_request(self, *_: Any) -> None:
        """Return no request, which leaves the answer an error."""


@dataclass(slots=True)
class Webhook:
    """Posts what the catalog says was not posted yet; what cannot be delivered is tried again, ever more seldom.

    An address that answers that it does not want an alert (4xx) is not asked again about that one.
    """

    dsn: str
    url: str
    leads: Event = field(default_factory=Event)
    end: Event = field(default_factory=Event)
    opener: OpenerDirector = field(default_factory=lambda: build_opener(_Refused))
    failures: int = 0

    def lead(self, leads: bool) -> None:
        """Post from now on, or leave it to the process that leads."""
        (self.leads.set if leads else self.leads.clear)()

    def run(self) -> None:
        """Post alerts until the end, on a connection of its own."""
        while not self.end.is_set():
            try:
                with connect(self.dsn, role="webhook") as connection, translate_errors():
                    connection.execute("LISTEN pgtrickle_alert")
                    while not self.end.is_set():
                        self._deliver(connection)
                        list(connection.notifies(timeout=LISTEN_FOR, stop_after=1))
            except PytrickleError as error:
                log.debug("Alerts cannot be read: %s", ended(str(error)))
                self.end.wait(LISTEN_FOR)

    def post_pending(self) -> None:
        """Post now what was not posted yet, each alert once at most."""
        self.leads.set()
        with connect(self.dsn, role="webhook") as connection, translate_errors():
            self._deliver(connection)

    def _deliver(self, connection: psycopg.Connection) -> None:
        if not self.leads.is_set():
            return
        with connection.cursor(row_factory=dict_row) as cursor:
            pending = cursor.execute(PENDING).fetchall()
        for alert in pending:
            if self.end.is_set() or not self._posted(alert):
                return
            connection.execute(POSTED, {"alert_id": alert["alert_id"], "resolved": alert["resolved"]})

    def _posted(self, alert: dict[str, Any]) -> bool:
        """Post one alert; say whether it need not be tried again. Where it must, wait before that."""
        keys = ("kind", "subject", "group", "since", "sentence", "resolved")
        body = json.dumps({key: alert[key] for key in keys}, default=lambda moment: moment.isoformat())
        headers = {"Content-Type": "application/json", "User-Agent": "pytrickle"}
        request = Request(self.url, body.encode(), headers, method="POST")
        try:
            with self.opener.open(request, timeout=TIMEOUT):
                pass
        except HTTPError as error:
            error.close()
            return self._refused(error.code)
        except (OSError, HTTPException) as error:
            return self._failed(type(error).__name__)
        if self.failures:
            log.info("The webhook at %s takes alerts again.", self._host)
        self.failures = 0
        return True

    def _refused(self, code: int) -> bool:
        if code < 400 or code >= 500 or code in (408, 429):
            return self._failed(f"HTTP {code}")
        log.warning("The webhook at %s does not want an alert: HTTP %s.", self._host, code)
        return True

    def _failed(self, how: str) -> bool:
        self.failures += 1
        if self.failures == 1:
            log.warning("The webhook at %s does not take alerts (%s); they are posted again later.", self._host, how)
        self.end.wait(min(2.0 ** (self.failures - 1), LONGEST_PAUSE))
        return False

    @property
    def _host(self) -> str | None:
        # The rest of an address is often a secret.
        return urlsplit(self.url).hostname


@contextmanager
def posting(dsn: str | None, url: str | None, *, insecure: bool = False) -> Iterator[Webhook | None]:
    """Post alerts in a thread for the length of the block, if there is an address; raise ConfigError for a bad one.

    Without a `dsn` it is that of the environment.
    """
    if url is None:
        yield None
        return
    webhook = Webhook(Settings.from_environment(dsn).dsn, checked_url(url, insecure))
    thread = Thread(target=webhook.run, name="webhook", daemon=True)
    thread.start()
    try:
        yield webhook
    finally:
        webhook.end.set()
        # Daemon or not: a delivery under way may take as long as it is given, which nobody waits for.
        thread.join(LISTEN_FOR)


@contextmanager
def posting_afterwards(dsn: str | None, url: str | None, *, insecure: bool = False) -> Iterator[None]:
    """Post what was not posted yet when the block is done, if there is an address; raise ConfigError for a bad one."""
    webhook = url and Webhook(Settings.from_environment(dsn).dsn, checked_url(url, insecure))
    yield
    if webhook:
        webhook.post_pending()
