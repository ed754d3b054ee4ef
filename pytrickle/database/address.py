"""What names a database: libpq's connection strings, and the URLs and engines of SQLAlchemy."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, TypeAlias

import psycopg
from psycopg.conninfo import make_conninfo

from pytrickle.config import libpq_dsn
from pytrickle.database.errors import translate_errors
from pytrickle.errors import ConfigError

if TYPE_CHECKING:
    import sqlalchemy

Address: TypeAlias = "str | sqlalchemy.URL | sqlalchemy.Engine"


def connection_string(address: Address | None) -> str | None:
    """Return the libpq connection string for an address; raise ConfigError for an engine that is not on psycopg 3.

    One connection is borrowed from an engine, so that what its creator or connect_args add counts as well.
    """
    if address is None or isinstance(address, str):
        return None if address is None else libpq_dsn(address)
    # Whoever gives such an address has loaded SQLAlchemy, and whoever does not need not wait for it.
    import sqlalchemy

    given: object = address
    if isinstance(given, sqlalchemy.Engine):
        return _of_engine(given)
    if isinstance(given, sqlalchemy.URL):
        return libpq_dsn(given.render_as_string(hide_password=False))
    hint = "Give a connection string, or a URL or engine of SQLAlchemy."
    raise ConfigError(f"An object of type {type(given).__name__} does not name a database.", hint)


def has_secret(dsn: str) -> bool:
    """Return whether a connection string holds a password, its own or that of a key.

    >>> has_secret("postgresql://me:s3cr3t@db/shop"), has_secret("postgresql://me@db/shop")
    (True, False)
    """
    try:
        options = psycopg.conninfo.conninfo_to_dict(libpq_dsn(dsn))
    except psycopg.Error:
        return False
    return bool(options.get("password") or options.get("sslpassword"))


def named(connection: psycopg.Connection) -> str:
    """Say in a few words which database a connection is on, and as whom."""
    info = connection.info
    return f"{info.dbname} on {info.host or 'localhost'}:{info.port} as {info.user}"


def _of_engine(engine: sqlalchemy.Engine) -> str:
    with translate_errors(), closing(engine.raw_connection()) as borrowed:
        driver = borrowed.driver_connection
        if isinstance(driver, psycopg.Connection):
            return make_conninfo("", **{**driver.info.get_parameters(), "password": driver.info.password or None})
    hint = "Give an engine on postgresql+psycopg, or its URL: pytrickle.connect(engine.url)."
    raise ConfigError(f"An engine on {engine.driver} has no connection that libpq knows.", hint)
