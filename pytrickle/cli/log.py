"""How `pytrickle run` writes its log: each event one line on stderr, as text, JSON or logfmt."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pytrickle.cli import values
from pytrickle.cli.documents import visible

NAME = "pytrickle"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/+-@,")


class LogFormat(StrEnum):
    """The forms of a line."""

    TEXT = "text"
    JSON = "json"
    LOGFMT = "logfmt"


class LogLevel(StrEnum):
    """The least important events to be written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class OneLine(logging.Formatter):
    """Writes a record, its traceback included, as one line that holds no control characters."""

    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self._write: Callable[[logging.LogRecord], str] = {
            LogFormat.TEXT: _text,
            LogFormat.JSON: lambda record: json.dumps(_fields(record), ensure_ascii=False),
            LogFormat.LOGFMT: _logfmt,
        }[form]

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return visible(self._write(record))


@contextmanager
def logged(form: LogFormat, level: LogLevel, *hidden: str) -> Iterator[None]:
    """Write the package's events to stderr for the length of the block, but for those of the `hidden` loggers.

    What libraries log, such as that a connection was lost which the package reports itself, is for debugging.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine(form))
    handler.addFilter(lambda record: record.name not in hidden)
    if level is not LogLevel.DEBUG:
        handler.addFilter(logging.Filter(NAME))
    root, logger = logging.getLogger(), logging.getLogger(NAME)
    before = logger.level
    root.addHandler(handler)
    logger.setLevel(level.upper())
    try:
        yield
    finally:
        root.removeHandler(handler)
        logger.setLevel(before)


def _text(record: logging.LogRecord) -> str:
    at = values.moment(datetime.fromtimestamp(record.created, UTC))
    return _joined(f"{at} {record.levelname:7} {record.name}  {record.getMessage()}\n{_traceback(record) or ''}")


def _logfmt(record: logging.LogRecord) -> str:
    return " ".join(f"{name}={_quoted(value)}" for name, value in _fields(record).items() if value is not None)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """Return what a program reads: the record, then what its event consists of."""
    event: Any = getattr(record, "event", None)
    told = values.jsonable(event) if isinstance(event, Mapping) or is_dataclass(event) else {}
    head = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": _joined(record.getMessage()),
    }
    traceback = _traceback(record)
    return head | told | ({"traceback": traceback} if traceback else {})


def _traceback(record: logging.LogRecord) -> str | None:
    return logging.Formatter().formatException(record.exc_info) if record.exc_info else None


def _joined(text: str) -> str:
    """Put lines into one."""
    return " | ".join(filter(None, (line.strip() for line in text.splitlines())))


def _quoted(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if text and _PLAIN.issuperset(text) else json.dumps(text, ensure_ascii=False)
