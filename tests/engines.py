"""Clients under each engine: of every refresh they require that the engine did it, and that none failed and healed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pytrickle.client.client import Client
from pytrickle.config import EngineName, Settings
from pytrickle.plan.limits import IN_ROUNDS, TOO_NARROW, WITHIN_OTHERS
from pytrickle.plan.planning import AS_WRITTEN, NEEDS_TABLE
from pytrickle.plan.refresh_plan import HANDED_ON, LEFT_CALLS, LEFT_GROUPS, RECOMPUTED
from pytrickle.plan.spark.leaves import NothingToJoin
from pytrickle.plan.spark.sub_join import JOINED
from pytrickle.refresh.values import AFTER_FAILURE, RefreshResult
from tests.equivalence.local_engine import LocalEngine

if TYPE_CHECKING:
    import pytest

ENGINES = tuple(EngineName)
NOTHING = NothingToJoin().why
DONE = ("FULL", "DIFFERENTIAL", "REINITIALIZE")
LEFT_TO_POSTGRESQL = f"by PostgreSQL, {TOO_NARROW}"
# All that PostgreSQL may compute of a refresh although the engine is Spark, as the reason of the refresh says it, and
# why that is right. Anything else that it computes is a failure.
WHOLE_REFRESHES = {
    TOO_NARROW: "a value does not fit into Spark's decimals: loudly, and exactly",
    WITHIN_OTHERS: "rows that a transaction has not committed yet are seen by no other connection",
    IN_ROUNDS: "the same, in every round of a cycle",
}
PARTS = {
    r"(scalar|rows) that has no rule for Spark": "constructs that have none so far",
    r"\w[\w ]* that has no keys": "one group for all rows, or whether there are any: one process computes that anyway",
    r"aggregate that calls an aggregate without a rule for Spark": "see SHOWN and CALL in operations/grouped",
    r"\w[\w ]* that has keys that only PostgreSQL can compare": "collations, floats, and types without a carrier",
    r"\w[\w ]* that is read by an expression": "functions and casts that are not on the list, which may fail",
    r"\w[\w ]* that has a condition on its result": "the same in a condition",
    r"\w[\w ]* that reads what PostgreSQL has to join": "sub-joins are for terms, not below operations",
    r"(aggregate|window|limit|distinct on) that was too wide for Spark's decimals before": "a value did not fit once",
    r"(window|limit|distinct on) that is sorted by what only PostgreSQL can sort": "texts, floats and expressions",
    r"window that (calls a function|has a frame) without a rule for Spark": "see operations/window_functions",
    r"\w[\w ]* that has rows of no table": "they are constants",
    r"window that has windows over other partitions": "rows are brought together by the keys of all of them",
    r"window that depends on the order of rows that tie": "the rows that PostgreSQL computes it from come sorted",
    JOINED: "comparisons by collations, floats and functions",
    LEFT_GROUPS: "aggregates that have none so far",
    RECOMPUTED: "the rest of a group is read where it lies",
}
KNOWN = f"(?:{'|'.join(PARTS)})"
# There is nothing to join.
ALONE = f"only buffered changes are read|{NOTHING}|{LEFT_CALLS}|{AS_WRITTEN}|{NEEDS_TABLE}"
PART = re.compile(f"{HANDED_ON}(?:{ALONE}|{KNOWN}(?:, {KNOWN})*)|{KNOWN}")


class ClientUnder(Client):
    """A client whose ticks check who refreshed; `done_by` counts the actions of each engine.

    `left` has what PostgreSQL computed although the engine is Spark, beside the stream table.
    """

    done_by: Counter[tuple[str, str | None]]
    left: set[tuple[str, str]]

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
        elif self.settings.engine is EngineName.SPARK:
            self._check_shares(result, told)
        else:
            assert result.engine == "postgres", told

    def _check_shares(self, result: RefreshResult, told: str) -> None:
        """Check who did what: where PostgreSQL did all or some of it, for a reason on the list."""
        before, by_postgresql, why = result.reason.partition("; by PostgreSQL, ")
        if by_postgresql:
            assert (result.engine, why in WHOLE_REFRESHES) == ("postgres", True), told
            self.left.add((result.stream_table, why))
            return
        _, _, parts = before.partition("; PostgreSQL computes ")
        assert (result.engine, PART.sub("", parts).strip(", ")) == ("spark", ""), told
        self.left |= {(result.stream_table, found[0]) for found in PART.finditer(parts)}


@contextmanager
def double_under(dsn: str) -> Iterator[ClientUnder]:
    """Open a client under the engine spark, of which it has the double."""
    client = ClientUnder(Settings.from_environment(dsn, engine=EngineName.SPARK))
    client._engine = LocalEngine(dsn)  # type: ignore[assignment]
    with _opened(client):
        yield client


@contextmanager
def client_under(engine: EngineName, dsn: str, request: pytest.FixtureRequest) -> Iterator[ClientUnder]:
    """Open a client under an engine; but for `spark` there is no Java, for `auto` needs none for tables of a test."""
    if engine is EngineName.SPARK:
        client = ClientUnder(Settings.from_environment(dsn, engine=engine), request.getfixturevalue("spark"))
    else:
        request.getfixturevalue("monkeypatch").setenv("JAVA_HOME", "/nowhere")
        client = ClientUnder(Settings.from_environment(dsn, engine=engine))
    with _opened(client):
        yield client


@contextmanager
def _opened(client: ClientUnder) -> Iterator[None]:
    client.done_by, client.left = Counter(), set()
    try:
        client.verify_catalog()
        yield
    finally:
        client.close()
