"""A libpq connection spelled for PostgreSQL's JDBC driver, so that Spark reaches the same database the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import psycopg

# libpq name -> pgjdbc name, for what both understand in the same form.
_PASSED_ON = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslpassword": "sslpassword",
    "gssencmode": "gssEncMode",
    "krbsrvname": "kerberosServerName",
    "connect_timeout": "connectTimeout",
    "options": "options",
}


@dataclass(frozen=True, slots=True)
class JdbcTarget:
    """Where Spark connects: ``url`` without credentials, ``properties`` with them.

    The properties hold the password, so they are left out of ``repr`` and must not be logged.
    """

    url: str
    properties: Mapping[str, str] = field(repr=False)


def jdbc_target(connection: psycopg.Connection) -> JdbcTarget:
    """Return the JDBC address of the server that ``connection`` reached, with all its parameters resolved.

    Service files, the password file and PG* variables have been read by libpq by then. A connection through a Unix
    socket becomes ``localhost``, because the driver speaks TCP only.
    """
    info = connection.info
    url = f"jdbc:postgresql://{_host(info.host)}:{info.port}/{quote(info.dbname, safe='')}"
    options = {option.keyword.decode(): option.val.decode() for option in connection.pgconn.info if option.val}
    properties = {jdbc: options[libpq] for libpq, jdbc in _PASSED_ON.items() if libpq in options}
    if properties.get("sslrootcert") == "system":
        del properties["sslrootcert"]
        properties["sslfactory"] = "org.postgresql.ssl.DefaultJavaSSLFactory"
    properties |= {"user": info.user, "ApplicationName": "pytrickle/spark", "driver": "org.postgresql.Driver"}
    local = _host(info.host) in {"localhost", "127.0.0.1", "[::1]"}
    if local and properties.get("sslmode") == "prefer" and not connection.pgconn.ssl_in_use:
        # libpq has settled what the driver would ask the server again at every connection. Executors elsewhere may
        # find another answer, so this holds for a server on this machine only.
        properties |= {"sslmode": "disable", "gssEncMode": "disable"}
    properties["assumeMinServerVersion"] = "15"
    if info.password:
        properties["password"] = info.password
    return JdbcTarget(url, properties)


def _host(host: str) -> str:
    if not host or host.startswith(("/", "@")):
        return "localhost"
    return f"[{host}]" if ":" in host else host
