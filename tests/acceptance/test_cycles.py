"""Cycles in ticks: one transaction, a limit; and what hangs on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Thread
from typing import Any

import pytest

import pytrickle
from pytrickle.compute.staged import Staged
from pytrickle.errors import CycleDetected, FixpointNotReached
from tests.acceptance.companies import CONTROL, EXPECTED, INHERITED, Group, companies, create
from tests.acceptance.conftest import assert_explained
from tests.conftest import Database
from tests.equivalence.local_engine import LocalEngine, local_client
from tests.waiting import wait_until_blocked


@pytest.fixture
def empty(db: Database) -> Iterator[Group]:
    """The tables, without stream tables."""
    with companies(db) as group:
        yield group


@pytest.fixture
def group(empty: Group) -> Group:
    """The cycle, filled."""
    create(empty)
    assert empty.tick() == {"control": "FULL", "inherited": "FULL"}
    assert empty.rows() == {(1, 100), (2, 100), (3, 100)}
    return empty


def test_a_quiet_tick_writes_nothing(group: Group) -> None:
    before = group.state()
    assert group.tick() == {"control": "NO_DATA", "inherited": "NO_DATA"}
    assert group.state() == before
    assert group.db.value("SELECT count(*) FROM pgtrickle.pgt_refresh_history") == 2


def test_a_cycle_is_one_transaction_and_one_line_of_history_per_member(group: Group) -> None:
    group.db.execute("INSERT INTO holdings VALUES (3, 4), (4, 5)")
    assert group.tick() == {"control": "DIFFERENTIAL", "inherited": "DIFFERENTIAL"}
    assert group.rows() == set(group.db.execute(EXPECTED)) == {(n, 100) for n in range(1, 6)}
    assert group.db.value("SELECT count(DISTINCT refresh_xid) FROM pgtrickle.pgt_stream_tables") == 1
    history = "SELECT rows_inserted, rows_deleted, reason FROM pgtrickle.refresh_history('control', 1)"
    assert group.db.execute(history) == [(2, 0, "2 changed rows, a fixed point after 3 rounds")]
    assert group.db.value("SELECT count(*) FROM pgtrickle.pgt_refresh_history") == 4
    assert group.engine.plans == [], "what reads its own transaction's rows is none of Spark's business"


def test_a_manual_refresh_of_one_member_refreshes_the_cycle(group: Group) -> None:
    group.db.execute("DELETE FROM owners; INSERT INTO owners VALUES (3, 200)")
    assert group.pt.refresh("inherited").action == "FULL"
    assert group.rows() == set(group.db.execute(EXPECTED)) == {(3, 200), (2, 200)}


@pytest.mark.parametrize("why", ["limit", "value"])
def test_a_cycle_that_fails_leaves_everything_as_it_was(group: Group, why: str) -> None:
    """Owner 7 of company 50 controls 51, 52 and so on; with a limit too low, or with a company nobody can compute."""
    bound = {"limit": "company < 60", "value": "100 / (58 - company) > -1000"}[why]
    onwards = f"SELECT company + 1, person FROM control WHERE company >= 50 AND {bound}"
    group.pt.alter_stream_table("control", max_fixpoint_iterations=5 if why == "limit" else 20)
    group.pt.alter_stream_table("inherited", query=f"{INHERITED} UNION ALL {onwards}")
    group.tick()
    before = group.state()
    group.db.execute("INSERT INTO owners VALUES (50, 7)")
    results = {r.stream_table.partition(".")[2]: r for r in group.pt.tick()}
    assert sorted(r.action for r in results.values()) == ["FAILED", "SKIP"]
    assert group.state() == before
    failed = "control" if why == "limit" else "inherited"
    sentence = {"limit": "no fixed point after 5 rounds", "value": "division by zero"}[why]
    assert sentence in str(results[failed].error)
    error = FixpointNotReached if why == "limit" else pytrickle.errors.PytrickleError
    with pytest.raises(error, match=sentence) as refused:
        group.pt.refresh("control")
    assert group.state() == before
    if why == "limit":
        assert_explained(refused.value)
        group.pt.alter_stream_table("control", max_fixpoint_iterations=20)
    else:
        group.db.execute("DELETE FROM owners WHERE company = 50; INSERT INTO owners VALUES (60, 7)")
        group.pt.alter_stream_table("inherited", query=INHERITED)
    group.pt.resume()
    group.pt.refresh("control")
    assert max(group.rows()) == (60, 7)
    assert group.pt.verify("control").matches and group.pt.verify("inherited").matches


def test_one_paused_member_holds_the_whole_cycle(group: Group) -> None:
    group.pt.pause("inherited")
    group.db.execute("INSERT INTO owners VALUES (9, 9)")
    before = group.state()
    assert group.tick() == {"control": "SKIP", "inherited": "SKIP"}
    assert group.state() == before
    group.pt.resume("inherited")
    assert set(group.tick().values()) == {"DIFFERENTIAL"} and (9, 9) in group.rows()


def test_what_reads_two_members_is_committed_with_them(group: Group) -> None:
    group.pt.create_stream_table(
        "counts", "SELECT c.person, count(*) AS rows FROM control AS c JOIN inherited AS i USING (person) GROUP BY 1"
    )
    group.tick()
    for change in ("INSERT INTO holdings VALUES (3, 4)", "DELETE FROM holdings WHERE parent = 2"):
        group.db.execute(change)
        assert group.tick()["counts"] == "DIFFERENTIAL"
        assert group.db.value("SELECT count(DISTINCT refresh_xid) FROM pgtrickle.pgt_stream_tables") == 1
        assert group.pt.verify("counts").matches
    assert group.rows("counts") == {(100, 2)}


def test_the_rest_of_the_graph_goes_on_while_a_cycle_fails(group: Group) -> None:
    group.pt.create_stream_table("people", "SELECT DISTINCT person FROM owners")
    group.pt.create_stream_table("reach", "SELECT person, count(*) AS companies FROM control GROUP BY person")
    group.tick()
    group.pt.alter_stream_table("control", query=f"{CONTROL} WHERE 1 / (company - 9) < 5")
    group.db.execute("INSERT INTO owners VALUES (2, 300); INSERT INTO holdings VALUES (2, 9), (9, 10)")
    assert group.tick() == {"control": "FAILED", "inherited": "SKIP", "people": "DIFFERENTIAL", "reach": "SKIP"}
    group.db.execute("DELETE FROM holdings WHERE child = 9")
    group.pt.alter_stream_table("control", query=CONTROL)
    group.pt.resume()
    group.tick()
    assert group.rows() == set(group.db.execute(EXPECTED)) and group.pt.verify("reach").matches


def test_a_cycle_may_come_and_go_through_a_view(empty: Group) -> None:
    empty.db.execute("CREATE VIEW more AS SELECT company, person FROM owners WHERE false")
    query = "SELECT company, person FROM owners UNION SELECT company, person FROM more"
    empty.pt.create_stream_table("control", query)
    empty.pt.create_stream_table("inherited", INHERITED, allow_circular=True)
    empty.tick()
    empty.db.execute("CREATE OR REPLACE VIEW more AS SELECT company, person FROM inherited")
    assert empty.tick()["control"] == "FAILED"
    with pytest.raises(CycleDetected, match="which reads public"):
        empty.pt.refresh("control")
    empty.pt.alter_stream_table("control", allow_circular=True)
    empty.pt.resume()
    empty.tick()
    assert empty.rows() == set(empty.db.execute(EXPECTED)) == {(1, 100), (2, 100), (3, 100)}
    empty.db.execute("CREATE OR REPLACE VIEW more AS SELECT company, person FROM owners WHERE false")
    empty.tick()
    assert empty.rows() == {(1, 100)} and empty.rows("inherited") == {(2, 100)}


@dataclass(frozen=True)
class Interrupted:
    """An engine after whose computations something else happens."""

    engine: LocalEngine
    then: Callable[[], object]

    def prepare(self) -> None:
        self.engine.prepare()

    def compute(self, *arguments: Any) -> Staged:
        staged = self.engine.compute(*arguments)
        self.then()
        return staged


ALTERED = "SELECT pgtrickle.alter_stream_table('people', query => 'SELECT DISTINCT -person AS person FROM owners')"


def test_a_query_altered_while_a_refresh_is_under_way_is_not_forgotten(group: Group) -> None:
    """The refresh that read the query of before must not commit: its rows would pass for those of the new query."""
    group.pt.create_stream_table("people", "SELECT DISTINCT person FROM owners")
    with local_client(group.db.dsn, direct_delta_rows=0, max_concurrent_refreshes=1) as (client, engine):
        for person in (200, 300, 400):
            # Once the query is known, a refresh reads it no more, and nothing keeps it from being altered.
            client.tick()
            group.db.execute("INSERT INTO owners VALUES (4, %s)", person)
        client._refreshing().engine = Interrupted(engine, lambda: group.db.execute(ALTERED))
        assert {r.stream_table: r.action for r in client.tick()}["public.people"] == "SKIP"
        assert group.rows("people") == {(100,), (200,), (300,)}
    assert group.tick()["people"] == "REINITIALIZE"
    assert group.rows("people") == {(-100,), (-200,), (-300,), (-400,)} and group.pt.verify("people").matches


def test_a_query_is_altered_after_the_refresh_that_uses_it(group: Group) -> None:
    """The refresh has read the query in its snapshot, which it holds while it waits for the row of the stream table."""
    group.pt.create_stream_table("people", "SELECT DISTINCT person FROM owners")
    other = group.db.connect()
    altering = Thread(target=lambda: other.execute(ALTERED.encode()))

    def alter() -> None:
        altering.start()
        wait_until_blocked(group.db, ALTERED)

    with local_client(group.db.dsn, direct_delta_rows=0, max_concurrent_refreshes=1) as (client, engine):
        client._refreshing().engine = Interrupted(engine, alter)
        assert {r.stream_table: r.action for r in client.tick()}["public.people"] == "FULL"
    altering.join(timeout=20)
    assert not altering.is_alive() and group.rows("people") == {(100,)}
    assert group.tick()["people"] == "REINITIALIZE"
    assert group.rows("people") == {(-100,)}
