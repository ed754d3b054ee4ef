"""Who may see the page: names under which it is served, the origins of requests, the token, and security headers."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from secrets import compare_digest, token_urlsafe
from socket import gethostname
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ASSETS = "/assets/"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    return host == "localhost" or (is_address(host) and ip_address(host).is_loopback)


def is_address(host: str) -> bool:
    """Return whether a host is written as an address, which no foreign name can be made to stand for."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_wildcard(host: str) -> bool:
    """Return whether a host stands for every address of this machine."""
    return is_address(host) and ip_address(host).is_unspecified


def host_of(authority: str) -> str | None:
    """Return the host of a Host header without its port, None where it is none.

    >>> host_of("db.example.com:8080"), host_of("[::1]:8080"), host_of("a/b"), host_of("x:1:2")
    ('db.example.com', '::1', None, None)
    """
    try:
        parts = urlsplit(f"//{authority}")
        parts.port  # noqa: B018  # raises where it is no number
    except ValueError:
        return None
    is_plain = parts.netloc == authority and "@" not in authority
    return parts.hostname if is_plain else None


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one console. Without a `token` everybody may see it who reaches it.

    `hosts` are the names under which it is served: any other name may belong to a page that had its name point to this
    machine. With `any_address`, addresses are allowed too.
    """

    hosts: frozenset[str]
    any_address: bool = False
    token: str | None = field(default=None, repr=False)
    cookie_value: str = field(default_factory=token_urlsafe, repr=False)
    cookie_name: str = "pytrickle_console"

    @classmethod
    def of(cls, host: str, port: int, allowed: tuple[str, ...] = ()) -> Access:
        """Return the rules for an address on which the console listens, and further names of it."""
        local, wildcard = is_loopback(host), is_wildcard(host)
        own = LOOPBACK if local else (gethostname(),) if wildcard else (host,)
        names = frozenset(name.strip("[]").lower() for name in (host, *own, *allowed))
        # Cookies are not told apart by ports.
        return cls(names, wildcard, None if local else token_urlsafe(), cookie_name=f"pytrickle_console_{port}")

    def serves(self, authority: str) -> bool:
        """Return whether the console is served under the name that a Host header has."""
        host = host_of(authority)
        return host is not None and (host in self.hosts or (self.any_address and is_address(host)))

    def knows(self, token: str) -> bool:
        """Return whether somebody has the token."""
        return self.token is not None and compare_digest(token.encode(), self.token.encode())

    def has_entered(self, cookies: str) -> bool:
        """Return whether a browser may see the pages, by its Cookie header."""
        shown = cookie_parser(cookies).get(self.cookie_name, "")
        return self.token is None or compare_digest(shown.encode(), self.cookie_value.encode())


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets a request reach the pages by the rules, and adds security headers to each answer."""

    app: ASGIApp
    access: Access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-cache" if scope["path"].startswith(ASSETS) else "no-store")
            await send(message)

        await (self._refusal(scope) or self.app)(scope, receive, secured)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return what keeps a request from the pages, or takes its token; None where nothing does."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.access.serves(hosts[0]):
            return _sentence("This console is not served under this name. Start it with --allowed-host NAME.")
        if not _is_own(headers.get("origin"), hosts[0]) or _is_part_of_another(headers):
            return _sentence("This request comes from another page.")
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and self.access.knows(token):
            return self._entrance()
        if not self.access.has_entered("; ".join(headers.getlist("cookie"))):
            return _sentence("This console wants a token: open the address that pytrickle console printed.")
        return None

    def _entrance(self) -> Response:
        response = RedirectResponse("/", status_code=303)
        name, value = self.access.cookie_name, self.access.cookie_value
        response.set_cookie(name, value, path="/", httponly=True, samesite="strict")
        return response


def _is_own(origin: str | None, host: str) -> bool:
    """Return whether a request comes from a page of this console, or from none that a browser names."""
    return origin is None or (origin.partition("://")[0] in {"http", "https"} and origin.partition("://")[2] == host)


def _is_part_of_another(headers: Headers) -> bool:
    """Return whether another page loads this one, as an image or a frame: without an origin, but a browser says so.

    A link that leads here from elsewhere is followed.
    """
    if headers.get("sec-fetch-site", "none") in {"none", "same-origin"}:
        return False
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) != ("navigate", "document")


def _sentence(text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status_code=403)
