"""Stream tables for plain PostgreSQL: refreshed differentially by PostgreSQL or Spark, gated by watermarks."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # What is loaded when it is first asked for has its types all the same.
    from pytrickle import errors
    from pytrickle.client.client import Client, as_of, connect, install
    from pytrickle.compute.spark.builder import configure_spark_with_pytrickle
    from pytrickle.config import Settings
    from pytrickle.definitions.decorator import stream_table
    from pytrickle.inspect.as_of import AsOf
    from pytrickle.inspect.verify import VerifyResult
    from pytrickle.refresh.values import RefreshResult

__all__ = [
    "AsOf",
    "Client",
    "RefreshResult",
    "Settings",
    "VerifyResult",
    "as_of",
    "configure_spark_with_pytrickle",
    "connect",
    "errors",
    "install",
    "stream_table",
]

_HOMES = {
    "AsOf": "pytrickle.inspect.as_of",
    "Client": "pytrickle.client.client",
    "RefreshResult": "pytrickle.refresh.values",
    "Settings": "pytrickle.config",
    "VerifyResult": "pytrickle.inspect.verify",
    "as_of": "pytrickle.client.client",
    "configure_spark_with_pytrickle": "pytrickle.compute.spark.builder",
    "connect": "pytrickle.client.client",
    "install": "pytrickle.client.client",
    "stream_table": "pytrickle.definitions.decorator",
}


def __dir__() -> list[str]:
    """Return what there is to use, also what is loaded when it is first asked for."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Load what there is to use when it is first asked for: the command line is to start at once."""
    from importlib import import_module

    if name == "errors":
        return import_module("pytrickle.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'pytrickle' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
