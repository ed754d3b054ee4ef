"""Merging changes looks each touched row or group up, however many there are: no join reads one side for each row."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from pytrickle.apply import few_rows, rows
from pytrickle.apply.few_rows import Changes
from pytrickle.apply.statements import Text, run
from pytrickle.client.client import Client
from pytrickle.database import trusted
from pytrickle.plan.apply_plan import Target
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

GROUPS, TOUCHED = 20_000, 12_000
TABLES = (
    "CREATE TABLE sales (id int PRIMARY KEY, name text, kind char(20), amount numeric(9, 2), note json)",
    f"""INSERT INTO sales SELECT i, 'n' || i % {GROUPS}, 'k', i, to_json(i)
    FROM generate_series(1, {2 * GROUPS}) AS i""",
)
NAMES = "SELECT name, kind, count(*) AS n, sum(amount) AS total FROM sales GROUP BY name, kind HAVING count(*) <> 7"
FIRST_NAMES = "SELECT name, kind, sum(amount) AS total FROM sales GROUP BY name, kind ORDER BY total DESC, name LIMIT "
FIRST_ROWS = "SELECT id, amount FROM sales ORDER BY amount DESC, id LIMIT 5000"
# No value of this type has a hash by which an index could find its row.
NOTES = "SELECT note FROM sales"
KINDS = "SELECT kind FROM sales"
# Few rows that LIMIT shows are compared with each change as fast as they are hashed.
FEW = 100


@pytest.fixture
def client(db: Database) -> Iterator[Client]:
    """A client on a database with many rows of many groups."""
    for text in TABLES:
        db.execute(text)
    with local_client(db.dsn) as (client, _):
        yield client


@pytest.mark.parametrize("query", [NAMES, f"{FIRST_NAMES}10", f"{FIRST_NAMES}5000", FIRST_ROWS, NOTES])
def test_many_changes_are_merged_by_lookups(
    db: Database, client: Client, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    plans: list[dict[str, Any]] = []

    def explained(connection: psycopg.Connection, text: Text) -> int:
        if isinstance(text, str) and text.startswith(("INSERT", "UPDATE", "DELETE")):
            plans.append(_plan(connection, text))
        return run(connection, text)

    client.create_stream_table("result", query, refresh_mode="DIFFERENTIAL")
    client.tick()
    db.execute(f"DELETE FROM sales WHERE id % 4 = 0 AND id % {GROUPS} < {TOUCHED}")
    db.execute(f"UPDATE sales SET amount = amount + 1, note = to_json(-id) WHERE id % {GROUPS} < {TOUCHED}")
    monkeypatch.setattr(rows, "run", explained)
    (result,) = client.tick()
    assert result.action == "DIFFERENTIAL" and client.verify("result").matches
    assert len(plans) >= 2 and sum(len(_joins(plan)) for plan in plans) > 0
    assert [join for plan in plans for join in _joins(plan) if _pairs(join)] == []


@pytest.mark.parametrize("query", [FIRST_ROWS, NOTES])
def test_few_changes_are_merged_by_lookups(
    db: Database, client: Client, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    plans: list[dict[str, Any]] = []
    ask = few_rows._ask_to_change

    def explained(connection: psycopg.Connection, target: Target, changes: Changes) -> psycopg.Cursor:
        asked = ask(connection, target, changes)
        given = {"rows": changes.rows, "weights": changes.weights, "frozen_before": None}
        plans.append(_plan(connection, target.apply_few, given))
        return asked

    client.create_stream_table("result", query, refresh_mode="DIFFERENTIAL")
    client.tick()
    db.execute("UPDATE sales SET amount = amount + 1, note = to_json(-id) WHERE id > 39900")
    monkeypatch.setattr(few_rows, "_ask_to_change", explained)
    (result,) = client.tick()
    assert (result.action, result.rows_inserted) == ("DIFFERENTIAL", FEW) and client.verify("result").matches
    joins = [join for plan in plans for join in _joins(plan)]
    assert joins and [join for join in joins if _pairs(join)] == []


def test_a_row_that_is_stored_many_times_is_found_once(
    db: Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[dict[str, Any]] = []
    ask = few_rows._ask_to_change

    def explained(connection: psycopg.Connection, target: Target, changes: Changes) -> psycopg.Cursor:
        with connection.transaction(force_rollback=True):
            given = {"rows": changes.rows, "weights": changes.weights, "frozen_before": None}
            plans.append(_plan(connection, target.apply_few, given, "EXPLAIN (ANALYZE, FORMAT JSON)"))
        return ask(connection, target, changes)

    client.create_stream_table("result", KINDS, refresh_mode="DIFFERENTIAL")
    client.tick()
    db.execute("DELETE FROM sales WHERE id IN (7, 8)")
    monkeypatch.setattr(few_rows, "_ask_to_change", explained)
    (result,) = client.tick()
    assert (result.action, result.rows_deleted) == ("DIFFERENTIAL", 2) and client.verify("result").matches
    scans = [scan for plan in plans for scan in _parts(plan) if scan.get("Relation Name") == "result"]
    assert scans and max(scan["Actual Rows"] for scan in scans) == 2


def _plan(
    connection: psycopg.Connection,
    text: str,
    given: dict[str, str | None] | None = None,
    explain: str = "EXPLAIN (FORMAT JSON)",
) -> dict[str, Any]:
    found = connection.execute(trusted(f"{explain} {text}"), given).fetchone()
    assert found is not None
    plan: dict[str, Any] = found[0][0]["Plan"]
    return plan


def _parts(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _parts(part)


def _joins(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [part for part in _parts(plan) if part["Node Type"] in {"Nested Loop", "Hash Join", "Merge Join"}]


def _pairs(join: dict[str, Any]) -> bool:
    """Whether a join compares all rows of one side with each of the other."""
    inner = join["Plans"][1]
    while inner["Node Type"] == "Limit":
        (inner,) = inner["Plans"]
    found = "Index Cond" in inner or inner["Node Type"] in {"Tid Scan", "Function Scan"}
    return join["Node Type"] == "Nested Loop" and not found
