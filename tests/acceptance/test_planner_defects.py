"""What the planner fails on concerns one stream table alone; it is logged with its traceback, and counted."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pytrickle.catalog import stream_table as catalog
from pytrickle.client.client import Client
from pytrickle.errors import Defect, NotDifferentiable
from pytrickle.plan import analysis, planning
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.repeats import first

OUR_OWN_FAULT = (TypeError, AttributeError, AssertionError, KeyError, RecursionError, ZeroDivisionError)


@pytest.fixture
def client(db: Database) -> Iterator[Client]:
    """Two stream tables, `bad` and `good`, over a table with rows."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, k int)")
    db.execute("INSERT INTO t SELECT n, n % 3 FROM generate_series(1, 9) AS n")
    with local_client(db.dsn) as (opened, _):
        opened.create_stream_table("bad", "SELECT k, count(*) AS n FROM t GROUP BY k")
        opened.create_stream_table("good", "SELECT id FROM t")
        yield opened


def failing(function: Callable[..., Any], error: type[Exception], suspect: Callable[..., bool]) -> Callable[..., Any]:
    def step(*arguments: Any) -> Any:
        if suspect(*arguments):
            raise error("of the planner")
        return function(*arguments)

    return step


def bad_definition(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    """Have the planner fail on the query of `bad`."""
    monkeypatch.setattr(
        analysis, "parse", failing(analysis.parse, error, lambda definition, _: definition.name == "bad")
    )


def actions(client: Client) -> dict[str, str]:
    return {result.stream_table.removeprefix("public."): result.action for result in client.tick()}


def rows(db: Database) -> list[tuple[Any, ...]]:
    return db.execute("SELECT * FROM bad ORDER BY 1")


@pytest.mark.parametrize("error", first(2, OUR_OWN_FAULT))
def test_a_query_that_the_planner_fails_on_refreshes_full_and_is_counted(
    db: Database,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: type[Exception],
) -> None:
    bad_definition(monkeypatch, error)
    client.tick()
    db.execute("DELETE FROM t WHERE id = 1")
    assert actions(client) == {"bad": "FULL", "good": "DIFFERENTIAL"}
    assert rows(db) == [(0, 3), (1, 2), (2, 3)]
    record, *_ = [record for record in caplog.records if record.name == "pytrickle.plan.analysis"]
    assert record.exc_info is not None and record.exc_info[0] is error
    status = client.status()
    assert status.planner_defects == 1
    assert {row.stream_table: row.planner_defect for row in status.stream_tables} == {
        "public.bad": repr(error("of the planner")),
        "public.good": None,
    }
    assert "the planner fails" in client.explain("bad").text
    monkeypatch.undo()
    with local_client(db.dsn) as (mended, _):
        for number, action in ((2, "REINITIALIZE"), (3, "DIFFERENTIAL")):
            db.execute("UPDATE t SET k = 5 WHERE id = %s", number)
            assert actions(mended)["bad"] == action
        assert mended.status().planner_defects == 0
        assert rows(db) == [(0, 2), (1, 2), (2, 2), (5, 2)]


@pytest.mark.parametrize("error", OUR_OWN_FAULT[:2])
def test_a_delta_that_cannot_be_planned_is_replaced_by_the_whole_query(
    db: Database, client: Client, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    client.tick()
    fails = failing(planning.plan_differential, error, lambda task, *_: task.shape.definition.name == "bad")
    monkeypatch.setattr(planning, "plan_differential", fails)
    db.execute("DELETE FROM t WHERE id = 1")
    assert actions(client) == {"bad": "FULL", "good": "DIFFERENTIAL"}
    assert rows(db) == [(0, 3), (1, 2), (2, 3)]
    assert client.status().planner_defects == 1
    monkeypatch.undo()
    for number in (2, 3):
        db.execute("DELETE FROM t WHERE id = %s", number)
        client.tick()
    assert client.status().planner_defects == 0
    assert rows(db) == [(0, 2), (1, 2), (2, 2)]


@pytest.mark.parametrize("error", OUR_OWN_FAULT[:2])
@pytest.mark.parametrize("together", [False, True])
def test_what_makes_reading_one_definition_fail_never_leaves_that_table(
    db: Database, client: Client, monkeypatch: pytest.MonkeyPatch, error: type[Exception], together: bool
) -> None:
    client.tick()
    client.create_stream_table("beside", "SELECT id FROM bad AS b, t WHERE b.k = t.k")
    if together:
        client.create_refresh_group("pair", ["bad", "beside"])
    number = db.value("SELECT pgt_id FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'bad'")
    with local_client(db.dsn) as (other, _):
        monkeypatch.setattr(
            catalog, "definition", failing(catalog.definition, error, lambda _, pgt_id: pgt_id == number)
        )
        db.execute("DELETE FROM t WHERE id = 1")
        results = {result.stream_table: result for result in other.tick()}
        assert {name: result.action for name, result in results.items()} | {"public.beside": "SKIP"} == {
            "public.bad": "FAILED",
            "public.good": "DIFFERENTIAL",
            "public.beside": "SKIP",
        }
        assert "pytrickle failed while" in str(results["public.bad"].error)
        with pytest.raises(Defect):
            other.explain("bad")
        assert other.status().planner_defects == 1
        monkeypatch.undo()
        other.resume("bad")
        db.execute("DELETE FROM t WHERE id = 2")
        other.tick()
        other.tick()
        assert rows(db) == [(0, 3), (1, 2), (2, 2)]


def test_a_mode_that_allows_no_full_refresh_is_refused_where_the_planner_fails(
    db: Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "parse", failing(analysis.parse, TypeError, lambda *_: True))
    with pytest.raises(NotDifferentiable, match="the planner fails"):
        client.create_stream_table("strict", "SELECT id FROM t", refresh_mode="DIFFERENTIAL")
    assert db.value("SELECT count(*) FROM pgtrickle.pgt_stream_tables") == 2


def test_only_who_may_read_a_stream_table_is_told_what_the_planner_failed_on(
    db: Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad_definition(monkeypatch, KeyError)
    client.tick()
    stranger = db.connect(user=db.create_role("stranger"))
    told = stranger.execute("SELECT planner_defect FROM pgtrickle.pgt_status() ORDER BY stream_table").fetchall()
    assert told == [("planner defect; who may read all its sources sees the message",), (None,)]
