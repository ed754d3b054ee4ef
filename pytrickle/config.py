"""Settings: what a pytrickle process needs to know, from arguments and PYTRICKLE_* environment variables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from enum import StrEnum
from typing import Any, Self

from pytrickle.errors import ConfigError

# PostgreSQL has milliseconds in an integer, and none of them for no limit.
SHORTEST_TIMEOUT, LONGEST_TIMEOUT = timedelta(milliseconds=1), timedelta(days=24)


class EngineName(StrEnum):
    """Who computes refreshes: Spark, PostgreSQL, or whichever is expected to be faster."""

    AUTO = "auto"
    SPARK = "spark"
    POSTGRES = "postgres"


@dataclass(frozen=True, slots=True)
class Settings:
    """How to reach the database and Spark, and when to prefer which.

    ``dsn``: libpq connection string or URL; empty means the libpq environment (PGHOST, PGSERVICE, …).
    ``engine``: who computes refreshes, unless a stream table says so itself: ``spark``, ``postgres`` (no Java is ever
    started), or ``auto``, which leaves to Spark what is large.
    ``spark_master``: master URL of the session pytrickle builds itself.
    ``jdbc_jar``: path of PostgreSQL's JDBC driver; None lets Spark's environment be searched.
    ``class_archive``: whether Spark's classes are archived in the user's cache directory, for faster starts.
    ``poll_interval``: how long the daemon sleeps when nothing wakes it.
    ``history_retention``: how long refreshes and watermark advances that nothing needs any more are kept.
    ``small_delta_rows``: up to this many changed rows ``auto`` joins inside PostgreSQL, beyond it in Spark.
    ``direct_delta_rows``: with ``auto``, up to this many rows, changed ones or all that a whole refresh reads or is
    expected to return, the refresher reads what PostgreSQL computed by itself; beyond it Spark reads.
    ``max_concurrent_refreshes``: how many units that do not read each other are refreshed at the same time.
    ``statement_timeout``: how long a statement of a refresh may run, for stream tables that say nothing of their own;
    None leaves it to the server's setting of that name.
    """

    dsn: str = field(default="", repr=False)
    engine: EngineName = EngineName.AUTO
    spark_master: str = "local[*]"
    jdbc_jar: str | None = None
    class_archive: bool = True
    poll_interval: timedelta = timedelta(seconds=1)
    history_retention: timedelta = timedelta(days=30)
    small_delta_rows: int = 1_000_000
    direct_delta_rows: int = 1_000_000
    max_concurrent_refreshes: int = 4
    statement_timeout: timedelta | None = None

    def __post_init__(self) -> None:
        if self.poll_interval <= timedelta(0):
            raise ConfigError("The poll interval must be longer than zero.", "Give it in seconds, such as 0.5.")
        if self.history_retention <= timedelta(0):
            raise ConfigError("The history retention must be longer than zero.", "Give it in days, such as 30.")
        if self.small_delta_rows < 0:
            raise ConfigError("small_delta_rows must not be negative.", "0 sends every term to Spark.")
        if self.direct_delta_rows < 0:
            raise ConfigError("direct_delta_rows must not be negative.", "0 has Spark read every delta.")
        if self.statement_timeout is not None and not SHORTEST_TIMEOUT <= self.statement_timeout <= LONGEST_TIMEOUT:
            raise ConfigError(
                "The statement timeout must be from a millisecond to 24 days.", "Give it in seconds, such as 600."
            )
        if self.max_concurrent_refreshes < 1:
            raise ConfigError("max_concurrent_refreshes must be at least 1.", "1 refreshes one after the other.")

    @classmethod
    def from_environment(
        cls, dsn: str | None = None, *, environ: Mapping[str, str] | None = None, **overrides: Any
    ) -> Self:
        """Return settings from the arguments, else PYTRICKLE_<NAME> in ``environ``, else the defaults.

        Arguments that are None count as not given. Raises ConfigError for an unknown name or a malformed value.
        """
        environ = os.environ if environ is None else environ
        known = {setting.name: f"PYTRICKLE_{setting.name.upper()}" for setting in fields(cls)}
        if unknown := sorted(set(overrides) - set(known)):
            raise ConfigError(f"There is no setting {unknown[0]!r}.", f"The settings are {', '.join(sorted(known))}.")
        given = {name: value for name, value in {"dsn": dsn, **overrides}.items() if value is not None}
        read = {name: variable for name, variable in known.items() if environ.get(variable) and name not in given}
        values = {name: _of_variable(name, variable, environ[variable]) for name, variable in read.items()}
        return cls(**values | {name: _parsed(name, value) for name, value in given.items()})


def _of_variable(name: str, variable: str, value: str) -> Any:
    try:
        return _parsed(name, value)
    except ConfigError as error:
        raise ConfigError(error.message, f"{error.hint} It was read from {variable}.") from error


def libpq_dsn(dsn: str) -> str:
    """Return a connection string without the driver that SQLAlchemy's URLs name.

    >>> libpq_dsn("postgresql+psycopg://me@db/shop"), libpq_dsn("dbname=shop")
    ('postgresql://me@db/shop', 'dbname=shop')
    """
    scheme, separator, rest = dsn.partition("://")
    return f"postgresql{separator}{rest}" if separator and scheme.startswith("postgresql+") else dsn


def _engine(name: str) -> EngineName:
    try:
        return EngineName(name)
    except ValueError:
        raise ConfigError(f"There is no engine {name!r}.", f"The engines are {', '.join(EngineName)}.") from None


SWITCH = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}


def _switch(value: object) -> bool:
    try:
        return SWITCH[str(value).lower()]
    except KeyError:
        raise ConfigError(f"The setting class_archive cannot be {value!r}.", "It must be on or off.") from None


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "dsn": libpq_dsn,
    "engine": _engine,
    "class_archive": _switch,
    "poll_interval": lambda seconds: timedelta(seconds=float(seconds)),
    "statement_timeout": lambda seconds: timedelta(seconds=float(seconds)),
    "history_retention": lambda days: timedelta(days=float(days)),
    "small_delta_rows": int,
    "direct_delta_rows": int,
    "max_concurrent_refreshes": int,
}


def _parsed(name: str, value: Any) -> Any:
    if isinstance(value, timedelta) or name not in _PARSERS:
        return value
    try:
        return _PARSERS[name](value)
    except (ValueError, TypeError, OverflowError) as error:
        kind = "a whole number" if _PARSERS[name] is int else "a number"
        raise ConfigError(f"The setting {name} cannot be {value!r}.", f"It must be {kind}.") from error
