"""A tick after one without work looks only whether anything was committed; whatever was ends that rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytrickle.schedule.requests import calls
from pytrickle.schedule.rest import moment
from tests.acceptance.conftest import TABLES, Shop, advance
from tests.repeats import first

MOST_STATEMENTS = 4


@pytest.fixture
def resting(local_shop: Shop) -> Shop:
    """Two stream tables that show everything, after a tick that found nothing to do."""
    for name in ("totals", "named"):
        local_shop.pt.create_stream_table(name, TABLES[name])
    local_shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    local_shop.tick()
    assert {result.action for result in local_shop.tick().values()} == {"NO_DATA"}
    assert _rests(local_shop)
    return local_shop


def test_a_tick_at_rest_takes_few_statements_and_tells_the_same(resting: Shop, tmp_path: Path) -> None:
    connection = resting.pt._refreshing().connection.pgconn
    told: list[str] = []
    with (tmp_path / "trace").open("wb") as target:
        connection.trace(target.fileno())
        results = resting.pt._ticker.tick(lambda result: told.append(result.stream_table))
        connection.untrace()
    sent = [line.split("\t") for line in (tmp_path / "trace").read_text().splitlines()]
    statements = [parts for parts in sent if parts[1:2] == ["F"] and parts[3] in {"Query", "Execute"}]
    assert 0 < len(statements) <= MOST_STATEMENTS
    assert told == [result.stream_table for result in results] == ["public.totals", "public.named"]
    assert {result.action for result in results} == {"NO_DATA"}


@pytest.mark.parametrize(
    ("statement", "actions"),
    first(
        2,
        [
            ("INSERT INTO orders VALUES (2, 2, 20)", {"totals": "DIFFERENTIAL", "named": "DIFFERENTIAL"}),
            ("UPDATE customers SET name = 'Eve'", {"totals": "NO_DATA", "named": "DIFFERENTIAL"}),
            ("SELECT pgtrickle.reinitialize_stream_table('named')", {"totals": "NO_DATA", "named": "REINITIALIZE"}),
            ("SELECT pgtrickle.pause_stream_table('named')", {"totals": "NO_DATA"}),
            (
                "ALTER TABLE orders DISABLE TRIGGER USER; INSERT INTO orders VALUES (3, 1, 1)",
                {"totals": "REINITIALIZE"},
            ),
        ],
    ),
)
def test_a_commit_ends_the_rest(resting: Shop, statement: str, actions: dict[str, str]) -> None:
    resting.db.execute(statement)
    found = {name: result.action for name, result in resting.tick().items()}
    assert found | actions == found and (len(found) == 2 or found == actions)
    resting.assert_verified()


def test_a_transaction_that_was_open_before_ends_it_with_its_commit(resting: Shop) -> None:
    writer = resting.db.connect(autocommit=False)
    writer.execute("INSERT INTO orders VALUES (2, 2, 20)")
    for _ in range(2):
        assert {result.action for result in resting.tick().values()} == {"NO_DATA"}
        assert _rests(resting)
    writer.commit()
    assert {result.action for result in resting.tick().values()} == {"DIFFERENTIAL"}
    resting.assert_verified()


def test_whoever_begins_to_wait_for_a_refresh_ends_it(resting: Shop) -> None:
    caller, connection = resting.db.connect(autocommit=False), resting.pt._refreshing().connection
    known = calls(connection)
    caller.execute("SELECT nextval('pgtrickle.pgt_refresh_calls')")
    assert not _rests(resting) and calls(connection) > known


@pytest.mark.parametrize(
    ("query", "options"),
    first(
        1,
        [
            ("SELECT id, now() AS seen FROM orders", {}),
            (TABLES["totals"], {"schedule": "1 hour"}),
        ],
    ),
    ids=["by the clock", "by a schedule"],
)
def test_nothing_rests_where_a_clock_decides(resting: Shop, query: str, options: dict[str, str]) -> None:
    resting.pt.create_stream_table("other", query, **options)
    for _ in range(3):
        resting.tick()
    assert not _rests(resting)


def test_nothing_rests_where_watermarks_are_judged(resting: Shop) -> None:
    resting.pt.create_watermark_group("both", ["orders", "customers"])
    with resting.db.connect() as loader:
        for source in ("orders", "customers"):
            advance(loader, source, "12:00")
    for _ in range(3):
        resting.tick()
    assert not _rests(resting)


def _rests(shop: Shop) -> bool:
    rest = shop.pt._ticker.rest
    return rest is not None and rest.lasts(moment(shop.pt._refreshing().connection))
