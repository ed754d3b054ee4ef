"""A libpq connection spelled for PostgreSQL's JDBC driver, so that Spark reaches the same database the same way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import quote, urlsplit

import psycopg

from pytrickle.database.connect import connect
from pytrickle.database.jdbc_tls import tls_properties
from pytrickle.database.search_path import SAFE_PATH

# libpq name -> pgjdbc name, for what both understand in the same form.
_PASSED_ON = {"connect_timeout": "connectTimeout", "options": "options"}
_READ_BY = re.compile(r"SET LOCAL (IntervalStyle|lc_monetary) = '(.*)'")
_ESCAPED, _BACKSLASH = re.compile(r"([\s\\])"), r"\\\1"


@dataclass(frozen=True, slots=True)
class JdbcTarget:
    """Where Spark connects: ``url`` without credentials, ``properties`` with them.

    The properties hold the password, so they are left out of ``repr`` and must not be logged. ``limits`` are settings
    that would end a session, for an executor may compute for long between two parts of what it reads or writes.
    """

    url: str
    properties: Mapping[str, str] = field(repr=False)
    limits: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        """The server's name or address."""
        return urlsplit(self.url.removeprefix("jdbc:")).hostname or ""

    @property
    def is_loopback(self) -> bool:
        """Whether the address means the server only on the server's own machine."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def reading(self, statements: Iterable[str]) -> dict[str, str]:
        """Return the properties of a session without limits that reads texts as those were written under some settings.

        Dates are always in ISO form; of intervals and money there is no such form. Only what is set otherwise than a
        server comes with is asked for, since a pooler may not know the option.
        """
        found = {match[1]: match[2] for each in statements if (match := _READ_BY.fullmatch(each))}
        if found.get("IntervalStyle") == "postgres":
            del found["IntervalStyle"]
        set_by = [f"-c {name}={_ESCAPED.sub(_BACKSLASH, value)}" for name, value in found.items()]
        set_by += [f"-c {name}=0" for name in self.limits]
        options = " ".join([*filter(None, [self.properties.get("options")]), *set_by])
        return {**self.properties, **({"options": options} if options else {})}


def jdbc_target(connection: psycopg.Connection) -> JdbcTarget:
    """Return the JDBC address of the server that ``connection`` reached, with all its parameters resolved.

    Service files, the password file and PG* variables have been read by libpq by then; of several hosts it is the one
    that fitted ``target_session_attrs``. A connection through a Unix socket becomes ``localhost``, because the driver
    speaks TCP only. Raises ConfigError where the driver's connection would be weaker than this one.
    """
    info = connection.info
    options = {option.keyword.decode(): option.val.decode() for option in connection.pgconn.info if option.val}
    through_socket = info.host.startswith(("/", "@")) or not info.host
    properties = tls_properties(options, Path.home(), through_socket=through_socket)
    host = _host("" if through_socket else _address(connection, options, properties))
    properties |= {jdbc: options[libpq] for libpq, jdbc in _PASSED_ON.items() if libpq in options}
    properties |= {"user": info.user, "ApplicationName": "pytrickle/spark", "driver": "org.postgresql.Driver"}
    local = host in {"localhost", "127.0.0.1", "[::1]"}
    if local and properties.get("sslmode") == "prefer" and not connection.pgconn.ssl_in_use:
        # libpq has settled what the driver would ask the server again at every connection. Executors elsewhere may
        # find another answer, so this holds for a server on this machine only.
        properties |= {"sslmode": "disable", "gssEncMode": "disable"}
    properties["assumeMinServerVersion"] = "15"
    properties["currentSchema"] = SAFE_PATH
    if info.password:
        properties["password"] = info.password
    limits = (
        "idle_in_transaction_session_timeout",
        *(["transaction_timeout"] if info.server_version >= 170000 else []),
    )
    return JdbcTarget(f"jdbc:postgresql://{host}:{info.port}/{quote(info.dbname, safe='')}", properties, limits)


def current_target(connection: psycopg.Connection, dsn: str) -> JdbcTarget:
    """Return the same with the password that counts now: one that a file holds may be a token valid for minutes.

    What the connection string and the environment say stays as it is, but libpq alone knows which of all counts.
    """
    target = jdbc_target(connection)
    if "password" not in target.properties:
        return target
    with connect(dsn, role="login") as login:
        return replace(target, properties={**target.properties, "password": login.info.password})


def _address(connection: psycopg.Connection, options: Mapping[str, str], properties: Mapping[str, str]) -> str:
    """Return where the server is: at `hostaddr`, unless its certificate must be of the name and thereby proves it."""
    if "hostaddr" in options and properties.get("sslmode") != "verify-full":
        return connection.info.hostaddr
    return connection.info.host


def _host(host: str) -> str:
    if not host:
        return "localhost"
    return f"[{host}]" if ":" in host else host
