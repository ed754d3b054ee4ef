"""For Spark users: the sink that loads a batch and advances the watermark in one transaction, and the format."""

from typing import Any

_HOMES = {
    "PostgresSinkSource": "pytrickle.streaming.data_source",
    "postgres_sink": "pytrickle.streaming.sink.foreach_batch",
}


def __getattr__(name: str) -> Any:
    """Load Spark when it is first asked for."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'pytrickle.streaming' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
