"""A single delta that was slower than the whole was perhaps slow for once: it is timed beside the next whole ones."""

from collections.abc import Iterator

import pytest

import pytrickle
from pytrickle.catalog.definition import Evidence, PastRefresh
from pytrickle.refresh.remembered import Remembered
from tests.conftest import Database

# The whole takes ten times as long as what a row changes, also on a busy machine.
QUERY = "SELECT l.k, count(*) AS n, sum(r.v) AS s FROM l JOIN r ON r.k % 50 = l.k % 50 GROUP BY l.k"
SLOW = "UPDATE pgtrickle.pgt_refresh_history SET started_at = started_at - interval '1 hour' WHERE action = %s"
TIMED = "SELECT action, other_ms FROM pgtrickle.pgt_refresh_history WHERE delta_rows > 0 ORDER BY refresh_id"


@pytest.fixture
def changed(db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """A stream table whose only delta is said to have taken an hour."""
    monkeypatch.setattr("pytrickle.refresh.other_way.SHORT", 0.0)
    db.execute("CREATE TABLE l (id int PRIMARY KEY, k int); CREATE TABLE r (k int PRIMARY KEY, v int)")
    db.execute("INSERT INTO r SELECT n, n FROM generate_series(1, 2000) AS n")
    db.execute("INSERT INTO l SELECT n, n % 100 FROM generate_series(1, 20000) AS n; ANALYZE l, r")
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        client.create_stream_table("st", QUERY)
        client.tick()
    assert refresh(db) == "DIFFERENTIAL"
    db.execute(SLOW, "DIFFERENTIAL")
    return db


def refresh(db: Database, client: pytrickle.Client | None = None) -> str:
    """Refresh after a change, in a process of its own if no client is given."""
    if client is None:
        with pytrickle.connect(db.dsn, engine="postgres") as own:
            return refresh(db, own)
    db.execute("INSERT INTO l SELECT max(id) + 1, 7 FROM l")
    result = client.refresh("st")
    assert client.verify("st").matches
    return str(result.action)


@pytest.mark.parametrize("processes", ["one", "one each"])
def test_a_delta_that_was_slow_for_once_is_taken_again_at_the_refresh_after_the_next(
    changed: Database, processes: str
) -> None:
    with pytrickle.connect(changed.dsn, engine="postgres") as client:
        actions = [refresh(changed, client if processes == "one" else None) for _ in range(3)]
    assert actions == ["FULL", "DIFFERENTIAL", "DIFFERENTIAL"]
    (_, first), (_, second), (_, third), _ = changed.execute(TIMED)
    assert first is third is None and second > 0


def test_what_is_slow_indeed_is_timed_ever_more_seldom(changed: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[int] = []
    with pytrickle.connect(changed.dsn, engine="postgres") as client:
        monkeypatch.setattr("pytrickle.refresh.other_way.time_given_up", lambda *_: timed.append(len(made) + 1))
        made: list[str] = []
        for _ in range(8):
            made.append(refresh(changed, client))
    assert made == ["FULL"] * 8 and timed == [1, 2, 4, 8]


def test_what_is_always_computed_whole_is_not_timed(changed: Database) -> None:
    with pytrickle.connect(changed.dsn, engine="postgres") as client:
        client.alter_stream_table("st", refresh_mode="FULL")
        assert refresh(changed, client) == refresh(changed, client) == "FULL"
    assert [other for _, other in changed.execute(TIMED)] == [None] * 3


def test_two_deltas_are_believed() -> None:
    past, sources = Remembered(), frozenset({1})
    slow, quick = PastRefresh(False, 5, 9.0), PastRefresh(True, 5, 0.1)
    for refreshes, due in (
        ((slow,), True),
        ((quick, slow), True),
        ((quick, quick, slow), False),
        ((slow, slow), False),
    ):
        past.evidences[7] = Evidence(1_000, 10, refreshes)
        assert past.is_due_again(7, sources, 5) is due
        assert not past.is_due_again(7, sources, 5_000), "of so many changes nothing is known"
