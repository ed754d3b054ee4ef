"""A refresh that takes too long is given up: the other way is gone in the same refresh, and nothing is lost."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest

import pytrickle
import pytrickle.compute.postgres
import pytrickle.plan.placement
import pytrickle.refresh.other_way
import pytrickle.refresh.refresher
from pytrickle.apply.measures import CHOOSE, Measures
from pytrickle.catalog import definition
from pytrickle.database import settle
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.auto import Choice
from pytrickle.refresh.planner import Planner
from pytrickle.refresh.remembered import Remembered
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

QUERY = "SELECT l.k, count(*) AS n, sum(r.v) AS s FROM l JOIN r ON r.k % 50 = l.k % 50 GROUP BY l.k"
SERVER_LIMIT = (
    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = ''{}''', current_database()); END $$"
)
# So many changes are read where they are applied, and so many before.
FEW, MANY = 3_000, 6_000
# What is timed beside a whole refresh must be so many times quicker: no delta is.
SLOWER = 1e6
GAVE_UP = "SELECT gave_up_ms, other_ms FROM pgtrickle.pgt_refresh_history WHERE delta_rows > 0 ORDER BY refresh_id"
DELTA, WHOLE = Action.DIFFERENTIAL, Action.FULL


@pytest.fixture
def tables(db: Database) -> Database:
    db.execute("CREATE TABLE l (id int PRIMARY KEY, k int)")
    db.execute("CREATE TABLE r (k int PRIMARY KEY, v int)")
    db.execute("INSERT INTO r SELECT n, n FROM generate_series(1, 2000) AS n")
    db.execute("INSERT INTO l SELECT n, n % 100 FROM generate_series(1, 20000) AS n")
    db.execute("ANALYZE l, r")
    return db


@contextmanager
def loaded(db: Database) -> Iterator[pytrickle.Client]:
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        client.create_stream_table("st", QUERY)
        client.tick()
        yield client


def limiting(monkeypatch: pytest.MonkeyPatch, action: Action, seconds: float) -> list[Action]:
    """Have one way limited, and chosen until it was given up; return what was chosen."""
    # Such a short limit says nothing of how long the other way takes.
    monkeypatch.setattr(definition, "GIVEN_UP", 1e6)
    chosen: list[Action] = []

    def limited(choice: Choice, delta_rows: int) -> Choice:
        assert choice.costs is not None
        whole = [
            word for word in ("a whole one more", "a whole refresh is expected to take more") if word in choice.reason
        ]
        given_up = whole if action is WHOLE else choice.costs.experience.given_up(delta_rows)
        found = choice if given_up else replace(choice, action=action, most_seconds=seconds)
        chosen.append(found.action)
        return found

    monkeypatch.setattr(pytrickle.plan.placement, "limited", limited)
    return chosen


def change(db: Database, rows: int) -> None:
    db.execute(f"INSERT INTO l SELECT (SELECT max(id) FROM l) + n, n % 100 FROM generate_series(1, {rows}) AS n")


@pytest.mark.parametrize("rows", [FEW, MANY])
@pytest.mark.parametrize(("tried", "made"), [(DELTA, WHOLE), (WHOLE, DELTA)], ids=["delta", "whole"])
def test_what_takes_too_long_is_done_the_other_way(
    tables: Database, monkeypatch: pytest.MonkeyPatch, rows: int, tried: Action, made: Action
) -> None:
    with loaded(tables) as client:
        chosen, counted, given_up = limiting(monkeypatch, tried, 0.001), [], Measures.given_up

        def noting(measures: Measures, limit: float) -> None:
            given_up(measures, limit)
            counted.append(list(measures.seconds))

        monkeypatch.setattr(Measures, "given_up", noting)
        monkeypatch.setattr("pytrickle.refresh.other_way.MARGIN", SLOWER)
        change(tables, rows)
        (result,) = client.tick()
        assert result.error is None, result.error
        assert (result.action, chosen[0]) == (made.value, tried)
        assert "more than 1 ms" in result.reason and client.verify("st").matches
        assert counted == [[CHOOSE]]
        change(tables, rows)
        (again,) = client.tick()
        assert again.action == made.value and tried not in chosen[1:] and client.verify("st").matches
        assert "more than 1 ms" in again.reason


@pytest.mark.parametrize("rows", [FEW, MANY])
def test_what_ends_in_time_is_written_without_the_limit(
    tables: Database, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """The limit is for reading: a write may have to wait for a lock."""
    with loaded(tables) as client:
        limiting(monkeypatch, DELTA, 3_000.0)
        tables.execute("CREATE TABLE seen (timeout text)")
        tables.execute(
            "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN INSERT INTO public.seen VALUES (current_setting('statement_timeout')); RETURN NULL; END $$"
        )
        tables.execute("CREATE TRIGGER note AFTER INSERT ON st FOR EACH STATEMENT EXECUTE FUNCTION note()")
        change(tables, rows)
        (result,) = client.tick()
        assert result.action == "DIFFERENTIAL" and client.verify("st").matches
        assert {timeout for (timeout,) in tables.execute("SELECT timeout FROM seen")} == {"0"}


@pytest.mark.parametrize("of_server", [False, True], ids=["stream table", "server"])
def test_a_shorter_limit_of_the_stream_table_or_the_server_holds_for_a_trial_too(
    tables: Database, monkeypatch: pytest.MonkeyPatch, of_server: bool
) -> None:
    limits: list[str] = []

    def noting(connection: psycopg.Connection, settings: Iterable[str]) -> None:
        given = list(settings)
        limits.extend(setting for setting in given if "statement_timeout = " in setting)
        settle(connection, given)

    with loaded(tables):
        limiting(monkeypatch, DELTA, 3_000.0)
        monkeypatch.setattr(pytrickle.compute.postgres, "settle", noting)
    for allowed in ("90s", "2h"):
        if of_server:
            tables.execute(SERVER_LIMIT.format(allowed))
        with pytrickle.connect(tables.dsn, engine="postgres") as client:
            if not of_server:
                client.alter_stream_table("st", statement_timeout=allowed)
            change(tables, MANY)
            assert client.refresh("st").action == "DIFFERENTIAL"
    assert limits == ["SET LOCAL statement_timeout = 90000", "SET LOCAL statement_timeout = 3000000"]


def test_in_a_unit_nothing_is_tried(tables: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read for others in the same transaction would be lost with it."""
    with pytrickle.connect(tables.dsn, engine="postgres") as client:
        for name in ("one", "two"):
            client.create_stream_table(name, QUERY)
        client.create_refresh_group("both", ["one", "two"])
        client.tick()
        chosen = limiting(monkeypatch, DELTA, 0.001)
        change(tables, MANY)
        assert [result.error for result in client.tick()] == [None, None]
        assert chosen == [] and client.verify("one").matches and client.verify("two").matches


def test_what_spark_would_read_without_a_limit_is_not_tried(tables: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with local_client(tables.dsn, small_delta_rows=0, direct_delta_rows=0) as (client, _):
        client.create_stream_table("st", QUERY)
        client.tick()
        monkeypatch.setattr(pytrickle.plan.placement, "choose_action", lambda *_: Choice(WHOLE, "told to", 10))
        chosen: list[int] = []

        def limited(choice: Choice, delta_rows: int) -> Choice:
            chosen.append(delta_rows)
            return replace(choice, action=DELTA, most_seconds=3_000.0)

        monkeypatch.setattr(pytrickle.plan.placement, "limited", limited)
        for _ in range(2):
            change(tables, MANY)
            assert client.refresh("st").action == "FULL" and client.verify("st").matches
        assert len(chosen) == 1


@pytest.mark.parametrize("slow", [0.0, 3_000.0], ids=["history is read again", "remembered"])
@pytest.mark.parametrize("rows", [FEW, MANY])
def test_a_delta_that_was_given_up_too_early_is_timed_beside_the_whole(
    tables: Database, monkeypatch: pytest.MonkeyPatch, rows: int, slow: float
) -> None:
    """A trial's limit is a share of what the whole takes; what takes more than that may still be the quicker way."""
    monkeypatch.setattr(pytrickle.refresh.remembered, "SLOW", slow)
    with loaded(tables) as client:
        with monkeypatch.context() as early:
            limiting(early, DELTA, 0.001)
            change(tables, rows)
            (whole,) = client.tick()
        change(tables, rows)
        (delta,) = client.tick()
        assert client.verify("st").matches
    assert (whole.action, delta.action) == ("FULL", "DIFFERENTIAL")
    assert "a differential one more than 1 ms" in whole.reason and "more than" not in delta.reason


@pytest.mark.parametrize(("tried", "made"), [(DELTA, WHOLE), (WHOLE, DELTA)], ids=["delta", "whole"])
def test_what_one_process_gave_up_the_next_does_not_try(
    tables: Database, monkeypatch: pytest.MonkeyPatch, tried: Action, made: Action
) -> None:
    """Where a job starts a process for every refresh, each would wait for what does not end in time."""
    monkeypatch.setattr("pytrickle.refresh.other_way.MARGIN", SLOWER)
    chosen = limiting(monkeypatch, tried, 0.001)
    with loaded(tables):
        pass
    for _ in range(3):
        change(tables, MANY)
        with pytrickle.connect(tables.dsn, engine="postgres") as client:
            result = client.refresh("st")
            assert result.action == made.value and client.verify("st").matches
    assert chosen.count(tried) == 1 and "more than 1 ms" in result.reason
    assert tables.execute(GAVE_UP) == [(1.0, None), (None, None), (None, None)]


def test_what_was_timed_is_known_to_the_next_process(tables: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with loaded(tables) as client, monkeypatch.context() as early:
        limiting(early, DELTA, 0.001)
        change(tables, MANY)
        assert client.refresh("st").action == "FULL"
    ((gave_up, other),) = tables.execute(GAVE_UP)
    assert gave_up == 1.0 and other > 1.0
    tables.execute("UPDATE pgtrickle.pgt_refresh_history SET other_ms = 12.0 WHERE other_ms IS NOT NULL")
    change(tables, MANY)
    with pytrickle.connect(tables.dsn, engine="postgres") as client:
        result = client.refresh("st")
        assert result.action == "DIFFERENTIAL" and client.verify("st").matches
    assert "a differential refresh is expected to take 12 ms" in result.reason


def test_a_delta_that_was_given_up_is_timed_again_ever_more_seldom(
    tables: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The changes of the trial may have been dear for once; a hundred refreshes the slower way would be many."""
    timed: list[int] = []

    def noting(planner: Planner, *given: object) -> None:
        timed.append(planner.past.made_since[1])

    chosen = limiting(monkeypatch, DELTA, 0.001)
    monkeypatch.setattr(pytrickle.refresh.other_way, "LONGEST", 3_000.0)
    with loaded(tables) as client:
        with monkeypatch.context() as untimed:
            untimed.setattr(pytrickle.refresh.other_way, "time_given_up", noting)
            untimed.setattr(pytrickle.refresh.refresher, "time_given_up", noting)
            for _ in range(15):
                change(tables, 1000)
                assert client.refresh("st").action == "FULL"
        assert timed == [1, 2, 4, 8]
        change(tables, 1000)
        assert client.refresh("st").action == "FULL" and DELTA not in chosen[1:]
        change(tables, 1000)
        client.refresh("st")
        assert DELTA in chosen[1:] and client.verify("st").matches


def test_what_has_no_delta_any_more_is_not_timed_again(
    tables: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A source came to be unlogged, which a crash would empty unnoticed."""
    monkeypatch.setattr(pytrickle.refresh.other_way, "SHORT", 0.0)
    monkeypatch.setattr(Remembered, "is_due_again", lambda *_: True)
    with loaded(tables) as client:
        change(tables, FEW)
        assert client.refresh("st").action == "DIFFERENTIAL"
        tables.execute("ALTER TABLE l SET UNLOGGED")
        for _ in range(4):
            change(tables, FEW)
            assert [result.action for result in client.tick()] in (["FULL"], ["REINITIALIZE"])
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
