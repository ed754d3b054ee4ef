"""The connections that a loader may bring: psycopg's and SQLAlchemy's, neither of which is imported here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from pytrickle.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Session:
    """What a load needs of a connection: to begin a transaction that ends with a block, and one value of a query."""

    begin: Callable[[], AbstractContextManager[Any]]
    is_busy: Callable[[], bool]
    value: Callable[[str, tuple[object, ...]], str]


def session(connection: Any) -> Session:
    """Return a connection as a session; raise InvalidArgument if it is neither psycopg's nor SQLAlchemy's."""
    classes = {f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(connection).__mro__}
    if "psycopg.Connection" in classes:
        return _of_psycopg(connection)
    if "sqlalchemy.Connection" in classes:
        return _of_sqlalchemy(connection)
    raise InvalidArgument(
        f"{type(connection).__module__}.{type(connection).__name__} is not a connection that a load can use.",
        "Give a connection of psycopg 3 or of SQLAlchemy.",
    )


def _of_psycopg(connection: Any) -> Session:
    def value(query: str, parameters: tuple[object, ...]) -> str:
        # The raw result: the connection may have any row factory.
        result = connection.cursor().execute(query, parameters).pgresult
        return (result.get_value(0, 0) or b"").decode()

    def is_busy() -> bool:
        return bool(connection.info.transaction_status.name != "IDLE")

    return Session(connection.transaction, is_busy, value)


def _of_sqlalchemy(connection: Any) -> Session:
    def value(query: str, parameters: tuple[object, ...]) -> str:
        return str(connection.exec_driver_sql(query, parameters).scalar_one())

    return Session(connection.begin, connection.in_transaction, value)
