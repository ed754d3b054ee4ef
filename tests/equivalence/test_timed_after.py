"""A whole refresh that may be quicker is timed once the differential one is committed, and chosen if it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

import pytrickle
import pytrickle.plan.auto
import pytrickle.plan.cost
import pytrickle.plan.placement
import pytrickle.refresh.other_way
from pytrickle.catalog import definition
from pytrickle.compute.staged import Staged
from pytrickle.errors import PytrickleError, StatementTimeout
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.auto import Choice
from pytrickle.plan.cost import PER_STORED_GROUP, PER_STORED_ROW
from pytrickle.refresh.values import RefreshResult
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

ROWS = 6_000
QUERIES = {
    "rows": "SELECT l.id, l.k, r.v FROM l JOIN r ON r.k = l.k WHERE l.k < 90",
    "groups": "SELECT l.k, count(*) AS n, sum(r.v) AS s FROM l JOIN r ON r.k = l.k GROUP BY l.k",
}
FOUND = (
    "SELECT action, gave_up_ms, other_ms FROM pgtrickle.pgt_refresh_history WHERE delta_rows > 0 ORDER BY refresh_id"
)


@pytest.fixture(params=QUERIES.values(), ids=QUERIES)
def tables(db: Database, request: pytest.FixtureRequest) -> Iterator[tuple[Database, str]]:
    db.execute("CREATE TABLE l (id int PRIMARY KEY, k int)")
    db.execute("CREATE TABLE r (k int PRIMARY KEY, v int)")
    db.execute("INSERT INTO r SELECT n, n FROM generate_series(0, 99) AS n")
    db.execute("INSERT INTO l SELECT n, n % 100 FROM generate_series(1, 60000) AS n")
    db.execute("ANALYZE l, r")
    yield db, request.param


@contextmanager
def timing(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Iterator[None]:
    """Have every differential refresh timed against a whole one."""

    def limited(choice: Choice, delta_rows: int) -> Choice:
        return replace(choice, action=Action.DIFFERENTIAL, other_seconds=seconds)

    with monkeypatch.context() as patched:
        patched.setattr(pytrickle.plan.placement, "limited", limited)
        patched.setattr(pytrickle.plan.auto.Costs, "favours_whole", lambda *_: False)
        yield


def change(db: Database) -> None:
    db.execute(f"INSERT INTO l SELECT (SELECT max(id) FROM l) + n, n % 100 FROM generate_series(1, {ROWS}) AS n")


def next_refresh(client: pytrickle.Client, db: Database) -> RefreshResult:
    change(db)
    result = client.refresh("st")
    assert client.verify("st").matches
    return result


def test_what_a_whole_refresh_would_have_taken_is_known_to_the_next_refresh_and_process(
    tables: tuple[Database, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    db, query = tables
    monkeypatch.setattr(pytrickle.refresh.other_way, "FIXED", 0.0)
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        client.create_stream_table("st", query)
        client.tick()
        with timing(monkeypatch, 30.0):
            assert next_refresh(client, db).action == "DIFFERENTIAL"
            ((action, gave_up, other),) = db.execute(FOUND)
            assert (action, gave_up) == ("DIFFERENTIAL", None) and other > 1.0
            monkeypatch.setattr(pytrickle.refresh.other_way, "_read", lambda *_: 0.002)
            assert next_refresh(client, db).action == "DIFFERENTIAL"
        assert next_refresh(client, db).reason.startswith(
            f"{ROWS} changed rows: a whole refresh is expected to take 2 ms"
        )
    db.execute("DELETE FROM pgtrickle.pgt_refresh_history WHERE action = 'FULL' AND delta_rows > 0")
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        assert next_refresh(client, db).action == "FULL"


def test_what_is_stored_anew_counts_beside_what_is_read(
    tables: tuple[Database, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    db, query = tables
    for most in ("MOST_ROWS_READ", "MOST_ROWS_KEPT"):
        monkeypatch.setattr(pytrickle.plan.cost, most, -1)
    monkeypatch.setattr(pytrickle.refresh.other_way, "FIXED", 0.0)
    monkeypatch.setattr(pytrickle.refresh.other_way, "_read", lambda *_: 0.0)
    with pytrickle.connect(db.dsn, engine="postgres") as client, timing(monkeypatch, 30.0):
        client.create_stream_table("st", query)
        client.tick()
        next_refresh(client, db)
    kept, state = db.value("SELECT count(*) FROM st"), "count" in query
    per_row = 1000 * (PER_STORED_GROUP if state else PER_STORED_ROW)
    ((_, _, other),) = db.execute(FOUND)
    assert other == pytest.approx(kept * per_row, rel=0.3)


def test_a_whole_refresh_that_takes_too_long_is_not_timed_again(
    tables: tuple[Database, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Such a short limit says nothing of how long it takes.
    monkeypatch.setattr(definition, "GIVEN_UP", 1e6)
    # Nor is it to be timed again, which it would be where the changes take longer on a busy machine.
    monkeypatch.setattr(pytrickle.plan.placement, "limited", lambda choice, _: choice)
    db, query = tables
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        client.create_stream_table("st", query)
        client.tick()
        with timing(monkeypatch, 0.001):
            next_refresh(client, db)
        assert db.execute(FOUND) == [("DIFFERENTIAL", 1.0, None)]
        assert "a whole one more than 1 ms" in next_refresh(client, db).reason
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        assert "a whole one more than 1 ms" in next_refresh(client, db).reason


def test_what_fails_is_not_timed_again_and_harms_nothing(
    tables: tuple[Database, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[None] = []

    def failing(*_: object) -> Staged:
        tried.append(None)
        raise StatementTimeout("A whole refresh without a limit.") if len(tried) > 1 else PytrickleError("No.")

    db, query = tables
    with pytrickle.connect(db.dsn, engine="postgres") as client, timing(monkeypatch, 30.0):
        client.create_stream_table("st", query)
        client.tick()
        monkeypatch.setattr(pytrickle.refresh.other_way, "read_directly", failing)
        for _ in range(2):
            assert next_refresh(client, db).action == "DIFFERENTIAL"
    assert len(tried) == 1 and {row[1:] for row in db.execute(FOUND)} == {(None, None)}


def test_what_spark_would_read_is_not_timed(tables: tuple[Database, str], monkeypatch: pytest.MonkeyPatch) -> None:
    db, query = tables
    tried: list[None] = []
    monkeypatch.setattr(pytrickle.refresh.other_way, "read_directly", lambda *_: tried.append(None))
    with local_client(db.dsn, small_delta_rows=50_000, direct_delta_rows=0) as (client, _):
        client.create_stream_table("st", query)
        client.tick()
        with timing(monkeypatch, 30.0):
            for _ in range(2):
                assert next_refresh(client, db).action == "DIFFERENTIAL"
    assert tried == []
