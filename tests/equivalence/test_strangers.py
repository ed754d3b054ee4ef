"""The program that plays other people's queries: each outcome is told apart, on a script of our own."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.strangers.__main__ import equal_in, written
from tests.equivalence.strangers.changes import ROUNDS, change
from tests.equivalence.strangers.play import Player
from tests.equivalence.strangers.played import Played
from tests.servers import OLDEST, Server

SAMPLE = Path(__file__).parent / "strangers" / "sample"


@pytest.fixture(scope="module")
def player(servers: Callable[[int], Server]) -> Player:
    """A player of the sample that has begun."""
    player = Player(servers(OLDEST), SAMPLE)
    player.prepare()
    return player


def test_every_outcome_of_a_strange_query_is_told(player: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    found = list(player.play_script("sample"))
    assert [(each.query.split()[1], each.status) for each in found] == [
        ("depot,", "equal"),
        ("'a;b'", "equal"),
        ("p.id,", "equal"),
        ("id,", "indeterminate"),
        ("random()", "refused"),
        ("*", "unusable"),
        ("depots", "equal"),
    ]
    grouped, filtered, joined = found[:3]
    for each in (grouped, filtered, joined):
        assert each.actions == ["FULL", *["DIFFERENTIAL" for _ in ROUNDS]]

    monkeypatch.setattr(Client, "tick", lambda client: [])  # a stream table that nobody refreshes
    (neglected,) = player.play_again([grouped])
    assert neglected.status == "unequal"


def test_every_round_changes_rows(db: Database) -> None:
    with db.connect() as connection:
        connection.execute("CREATE TABLE crates AS SELECT n AS id, n % 3 AS kind FROM generate_series(1, 20) AS n")
        (crates,) = connection.execute("SELECT 'crates'::regclass::oid::int").fetchone() or (0,)
        rounds = [change(connection, number, [crates]) for number in range(len(ROUNDS))]
    assert rounds == [2, 3, 2, 5]  # kept and deleted; given back, twins and NULLs; one for each of two columns; all


def test_a_run_plays_what_another_one_showed_as_equal(player: Player, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    played = list(written(replace(player, last=4).play_script("sample"), results))
    again = replace(player, chosen=equal_in(results))
    assert [each.query for each in again.play_script("sample")] == [each.query for each in played[:3]]


def test_a_refresh_that_failed_is_no_equal_one() -> None:
    played = Played("sample", "SELECT")
    played.refreshed("FULL", "first load")
    assert not played.is_differential
    played.refreshed("DIFFERENTIAL", "2 changed rows")
    assert played.is_differential
    played.refreshed("FAILED", "division by zero")
    assert played.status == "failed"
