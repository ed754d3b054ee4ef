"""The strict refresh mode, and what the history calls a refresh: whole ones are never differential."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import pytrickle
from pytrickle.compute.staged import Staged
from pytrickle.errors import NotDifferentiable, PytrickleError, SparkOutOfMemory, WouldRecompute
from tests.commands import commands
from tests.conftest import Database
from tests.equivalence.local_engine import LocalEngine, local_client
from tests.repeats import first

TOTALS = "SELECT region, sum(amount) AS amount FROM sales GROUP BY region"
HISTORY = "SELECT action, status FROM pgtrickle.pgt_refresh_history ORDER BY refresh_id"


@pytest.fixture
def sales(db: Database) -> Database:
    db.execute("CREATE TABLE sales (id int PRIMARY KEY, region text, amount int)")
    db.execute("INSERT INTO sales VALUES (1, 'north', 2), (2, 'south', 3)")
    return db


@pytest.fixture
def pt(sales: Database) -> Iterator[pytrickle.Client]:
    with pytrickle.connect(sales.dsn, engine="postgres") as client:
        client.create_stream_table("totals", TOTALS, initialize=True, refresh_mode="DIFFERENTIAL_STRICT")
        yield client


def _forget_changes(sales: Database) -> None:
    sales.execute("ALTER TABLE sales DISABLE TRIGGER ALL")
    sales.execute("INSERT INTO sales VALUES (3, 'east', 5)")
    sales.execute("ALTER TABLE sales ENABLE TRIGGER ALL")


def _truncate_under_an_old_snapshot(sales: Database) -> None:
    sales.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; TRUNCATE sales; COMMIT")


def _rename_a_column(sales: Database) -> None:
    sales.execute("ALTER TABLE sales RENAME region TO area")


def _let_a_child_inherit(sales: Database) -> None:
    sales.execute("CREATE TABLE child () INHERITS (sales)")


def _replace_a_view(sales: Database) -> None:
    sales.execute("CREATE OR REPLACE VIEW large AS SELECT * FROM sales WHERE amount > 1")


def _move_to_another_cluster(sales: Database) -> None:
    sales.execute("UPDATE pgtrickle.pgt_stream_tables SET system_identifier = 1")


HARMS = (
    *(_truncate_under_an_old_snapshot, _rename_a_column, _forget_changes),
    *(_let_a_child_inherit, _move_to_another_cluster),
)


@pytest.mark.parametrize("harm", first(2, HARMS))
def test_a_strict_stream_table_fails_rather_than_be_computed_anew_until_somebody_asks(
    sales: Database, pt: pytrickle.Client, harm: Callable[[Database], None]
) -> None:
    before = sales.execute("SELECT * FROM totals ORDER BY 1")
    harm(sales)
    sales.execute("INSERT INTO sales VALUES (4, 'west', 7)")
    for _ in range(2):
        (result,) = pt.tick()
        assert result.action == "FAILED" and "would be computed anew" in (result.error or "")
    with pytest.raises(WouldRecompute, match="DIFFERENTIAL_STRICT") as failure:
        pt.refresh("totals")
    assert "pytrickle refresh public.totals --full" in (failure.value.hint or "")
    assert sales.execute("SELECT * FROM totals ORDER BY 1") == before
    assert commands(sales.dsn)("refresh", "totals", "--full").exit_code == 0
    assert pt.verify("totals").matches
    sales.execute("INSERT INTO sales VALUES (5, 'west', 7)")
    assert pt.refresh("totals").action == "DIFFERENTIAL"
    assert sales.execute(HISTORY) == [
        ("FULL", "COMPLETED"),
        ("REINITIALIZE", "FAILED"),
        ("REINITIALIZE", "COMPLETED"),
        ("DIFFERENTIAL", "COMPLETED"),
    ]


def test_truncating_a_source_is_a_change_like_any_other_to_a_strict_stream_table(
    sales: Database, pt: pytrickle.Client
) -> None:
    sales.execute("TRUNCATE sales")
    assert pt.refresh("totals").action == "DIFFERENTIAL"
    assert sales.execute("SELECT * FROM totals") == []


def test_a_replaced_view_stops_a_strict_stream_table_and_a_new_query_of_its_own_does_not(
    sales: Database, pt: pytrickle.Client
) -> None:
    sales.execute("CREATE VIEW large AS SELECT * FROM sales WHERE amount > 2")
    pt.create_stream_table("many", "SELECT count(*) FROM large", initialize=True, refresh_mode="differential_strict")
    _replace_a_view(sales)
    with pytest.raises(WouldRecompute, match="was replaced"):
        pt.refresh("many")
    assert pt.refresh("many", full=True).action == "REINITIALIZE"
    pt.alter_stream_table("many", query="SELECT count(*) FROM large WHERE amount > 0")
    assert pt.refresh("many").action == "REINITIALIZE"
    sales.execute("INSERT INTO sales VALUES (6, 'west', 7)")
    assert pt.refresh("many").action == "DIFFERENTIAL" and pt.verify("many").matches


def test_a_strict_stream_table_does_not_heal_a_failed_delta_by_computing_the_whole(
    sales: Database, pt: pytrickle.Client
) -> None:
    shares = "SELECT id, region, 10 / amount AS share FROM sales"
    pt.create_stream_table("shares", shares, initialize=True, refresh_mode="DIFFERENTIAL_STRICT")
    sales.execute("INSERT INTO sales VALUES (7, 'west', 0)")
    for _ in range(2):
        with pytest.raises(PytrickleError, match="division by zero") as failure:
            pt.refresh("shares")
        assert not isinstance(failure.value, WouldRecompute)
    sales.execute("UPDATE sales SET amount = 1 WHERE id = 7")
    with pytest.raises(PytrickleError, match="division by zero"):
        pt.refresh("shares")
    assert pt.refresh("shares", full=True).action == "REINITIALIZE" and pt.verify("shares").matches


def test_a_strict_stream_table_for_which_memory_is_short_fails_until_there_is_more(
    sales: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream table of another mode is computed anew at the next attempt."""
    sales.execute("CREATE TABLE regions (region text, country text)")
    sales.execute("INSERT INTO regions VALUES ('north', 'Norway')")
    joined = "SELECT id, country FROM sales JOIN regions USING (region)"
    with local_client(sales.dsn, small_delta_rows=0, direct_delta_rows=0) as (client, _):
        for name, mode in (("strict", "DIFFERENTIAL_STRICT"), ("other", "DIFFERENTIAL")):
            client.create_stream_table(name, joined, initialize=True, refresh_mode=mode)
        sales.execute("INSERT INTO sales VALUES (3, 'north', 1)")
        with monkeypatch.context() as patched:
            patched.setattr(LocalEngine, "compute", _run_out_of_memory)
            for name in ("strict", "other", "strict", "strict"):
                with pytest.raises(SparkOutOfMemory):
                    client.refresh(name)
        assert client.refresh("strict").action == "DIFFERENTIAL"
        assert client.refresh("other").action == "REINITIALIZE"
        assert all(result.matches for result in client.verify())
    failed = "SELECT DISTINCT action FROM pgtrickle.pgt_refresh_history WHERE status = 'FAILED'"
    assert sales.execute(failed) == [("DIFFERENTIAL",)]


def _run_out_of_memory(*_: object) -> Staged:
    raise SparkOutOfMemory("Spark could not compute the refresh: it ran out of memory.")


def test_what_has_no_delta_rule_cannot_be_strict(pt: pytrickle.Client) -> None:
    with pytest.raises(NotDifferentiable):
        pt.create_stream_table("now", "SELECT now() AS at FROM sales", refresh_mode="DIFFERENTIAL_STRICT")
    with pytest.raises(PytrickleError, match="DIFFERENTIAL_STRICT"):
        pt.create_stream_table("c", TOTALS, output_mode="complete", refresh_mode="DIFFERENTIAL_STRICT")


def test_the_history_never_calls_a_whole_refresh_differential(sales: Database) -> None:
    with pytrickle.connect(sales.dsn, engine="postgres") as pt:
        pt.create_stream_table("first_load", TOTALS)
        pt.create_stream_table("mode_full", TOTALS, initialize=True, refresh_mode="FULL")
        pt.create_stream_table("no_delta_rule", "SELECT now() AS at FROM sales", initialize=True)
        pt.create_stream_table("mode_complete", TOTALS, initialize=True, output_mode="complete")
        pt.create_stream_table("another_query", TOTALS, initialize=True)
        pt.alter_stream_table("another_query", query=TOTALS + " HAVING sum(amount) > 1")
        pt.create_stream_table("another_mode", TOTALS, initialize=True, refresh_mode="FULL")
        pt.alter_stream_table("another_mode", refresh_mode="AUTO")
        pt.create_stream_table("asked_for", TOTALS, initialize=True)
        sales.execute("SELECT pgtrickle.reinitialize_stream_table('asked_for')")
        pt.create_stream_table("fuse", TOTALS, initialize=True, fuse_ceiling=1)
        sales.execute("INSERT INTO sales VALUES (10, 'north', 1), (11, 'north', 1)")
        whole = {result.stream_table: result.action for result in pt.tick()}
        assert whole.pop("public.fuse") == "SKIP"
        pt.reset_fuse("fuse", "reinitialize")
        whole |= {result.stream_table: result.action for result in pt.tick() if result.action != "NO_DATA"}
        assert len(whole) == 8 and set(whole.values()) <= {"FULL", "REINITIALIZE"}
    assert sales.execute("SELECT DISTINCT action FROM pgtrickle.pgt_refresh_history ORDER BY 1") == [
        ("FULL",),
        ("REINITIALIZE",),
        ("SKIP",),
    ]


@pytest.mark.parametrize("mode", first(1, ("FULL", "complete", "no delta rule")))
def test_the_history_does_not_call_a_whole_refresh_that_failed_differential(sales: Database, mode: str) -> None:
    query = "SELECT id, 10 / amount AS share, now() < now() AS late FROM sales"
    options = {"FULL": {"refresh_mode": "FULL"}, "complete": {"output_mode": "complete"}, "no delta rule": {}}[mode]
    with pytrickle.connect(sales.dsn, engine="postgres") as pt:
        pt.create_stream_table("t", query if mode == "no delta rule" else TOTALS, initialize=True, **options)  # type: ignore[arg-type]
        if mode != "no delta rule":
            pt.alter_stream_table("t", query="SELECT region, sum(10 / amount) AS amount FROM sales GROUP BY region")
            pt.refresh("t")
        sales.execute("INSERT INTO sales VALUES (10, 'north', 0)")
        (result,) = pt.tick()
        assert result.action == "FAILED"
    failed = "SELECT action FROM pgtrickle.pgt_refresh_history WHERE status = 'FAILED'"
    assert sales.value(failed) == "FULL"
