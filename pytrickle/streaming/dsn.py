"""The connection string among the options of a data source.

Spark shows the options of a data source in plans and event logs, but not the one that is called `url`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytrickle.errors import InvalidArgument

NAMES = ("url", "dsn")


def dsn_among(options: Mapping[str, str]) -> str | None:
    """Return the connection string among options of lower case, if there is one.

    Raise InvalidArgument for two, and for one that only JDBC understands.

    >>> dsn_among({"url": "service=shop", "table": "orders"}), dsn_among({"table": "orders"})
    ('service=shop', None)
    """
    given = [options[name] for name in NAMES if options.get(name)]
    if len(given) > 1:
        raise InvalidArgument("The options url and dsn are the same.", "Give one of them.")
    if given and given[0].startswith("jdbc:"):
        raise InvalidArgument(
            "The connection string is one of JDBC.", "Give one of libpq: postgresql://user@host/shop."
        )
    return given[0] if given else None
