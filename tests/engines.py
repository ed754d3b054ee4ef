"""Clients under each engine: of every refresh they require that the engine did it, and that none failed and healed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pytrickle.client.client import Client
from pytrickle.config import EngineName, Settings
from pytrickle.refresh.values import AFTER_FAILURE, RefreshResult

if TYPE_CHECKING:
    import pytest

ENGINES = tuple(EngineName)
DONE = ("FULL", "DIFFERENTIAL", "REINITIALIZE")
# Why PostgreSQL may compute although the engine is Spark: it says so in the reason.
LEFT_TO_POSTGRESQL = "by PostgreSQL, since Spark's decimals are too narrow"


class ClientUnder(Client):
    """A client whose ticks check who refreshed; `done_by` counts the actions of each engine."""

    done_by: Counter[tuple[str, str | None]]

    def tick(self, *arguments: Any) -> tuple[RefreshResult, ...]:
        """Tick, and check every result."""
        results = super().tick(*arguments)
        for result in results:
            self._check(result)
            self.done_by[result.action, result.engine] += 1
        return results

    def _check(self, result: RefreshResult) -> None:
        told = f"{result.stream_table}: {result.action} by {result.engine}, {result.error or result.reason}"
        assert result.error is None and AFTER_FAILURE not in result.reason, told
        if result.action not in DONE:
            assert result.engine is None, told
        elif self.settings.engine is EngineName.SPARK and LEFT_TO_POSTGRESQL not in result.reason:
            assert result.engine == "spark", told
        else:
            assert result.engine == "postgres", told


@contextmanager
def client_under(engine: EngineName, dsn: str, request: pytest.FixtureRequest) -> Iterator[ClientUnder]:
    """Open a client under an engine; but for `spark` there is no Java, for `auto` needs none for tables of a test."""
    if engine is EngineName.SPARK:
        client = ClientUnder(Settings.from_environment(dsn, engine=engine), request.getfixturevalue("spark"))
    else:
        request.getfixturevalue("monkeypatch").setenv("JAVA_HOME", "/nowhere")
        client = ClientUnder(Settings.from_environment(dsn, engine=engine))
    client.done_by = Counter()
    try:
        client.verify_catalog()
        yield client
    finally:
        client.close()
