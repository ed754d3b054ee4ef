"""A client that only records what the command line asks of it, for the tests of the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import pytest
from click.testing import CliRunner

import pytrickle
from pytrickle.catalog.reports import Status, StreamTableStatus, WatermarkRow, WatermarkStatusRow
from pytrickle.client import reports
from tests.commands import COMMAND

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Result:
    stream_table: str = "shop.report"
    action: str = "DIFFERENTIAL"
    reason: str = "2 changes in orders"
    rows_inserted: int = 2
    rows_deleted: int = 1
    effective_watermark: datetime | None = NOON
    duration: timedelta = timedelta(milliseconds=120)
    error: str | None = None
    engine: str | None = None
    effective_batch: int | None = None


@dataclass(frozen=True)
class Verification:
    stream_table: str
    matches: bool
    missing: int = 0
    unexpected: int = 0
    pending: str | None = None
    error: str | None = None
    withheld: int = 0
    ties: bool = False


@dataclass(frozen=True)
class Explained:
    text: str = "differential in PostgreSQL"
    data: dict[str, Any] = field(default_factory=lambda: {"mode": "DIFFERENTIAL"})


def table(**changes: Any) -> StreamTableStatus:
    row: dict[str, Any] = {
        "pgt_id": 1,
        "stream_table": "shop.report",
        "status": "ACTIVE",
        "refresh_mode": "AUTO",
        "schedule": "calculated",
        "watermark_gating": "gate",
        "decision": "run",
        "reason": None,
        "effective_watermark": NOON,
        "data_timestamp": NOON,
        "last_refresh_at": NOON,
        "staleness": timedelta(seconds=5),
        "last_action": "DIFFERENTIAL",
        "last_error": None,
        "tier": "hot",
        "paused": False,
        "next_due_at": None,
        "consecutive_failures": 0,
        "retry_at": None,
        "fuse_blown_at": None,
        "effective_schedule": "when a source changes",
        "due": True,
    }
    return StreamTableStatus(**{**row, **changes})


class Recorder:
    """A client that notes the calls it gets and gives the answers it was told to give."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.answers: dict[str, Any] = {}
        self.dsn: str | None = None
        self.engine: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def answer(*arguments: Any, **keywords: Any) -> Any:
            self.calls.append((name, arguments, keywords))
            given = self.answers.get(name)
            return given(*arguments, **keywords) if callable(given) else given

        return answer


def recording(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Put a recorder in place of the client that commands open."""
    recorder = Recorder()

    def connect(dsn: str | None, engine: str | None = None) -> Recorder:
        recorder.dsn, recorder.engine = dsn, engine
        return recorder

    monkeypatch.setattr(pytrickle, "connect", connect, raising=False)
    monkeypatch.setattr(reports, "open_reports", connect)
    return recorder


def run(*arguments: str, **options: Any) -> Any:
    return CliRunner().invoke(COMMAND, arguments, prog_name="pytrickle", **options)


def state(*tables: StreamTableStatus) -> Status:
    source = WatermarkRow("shop.orders", NOON, NOON, NOON, "loader", "0/16B3748")
    group = WatermarkStatusRow(
        "pipeline", NOON, NOON, timedelta(0), timedelta(minutes=1), True, NOON, None, "all sources agree"
    )
    return Status(tables, (group,), (source,), datetime.now(UTC) - timedelta(seconds=90))
