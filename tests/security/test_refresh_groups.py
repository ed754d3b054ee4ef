"""Stream tables that are refreshed together give the owner of one source no hold on what is not in the group."""

from collections.abc import Iterator

import pytest

import pytrickle
from tests.equivalence.local_engine import local_client
from tests.security.roles import House, Session, ask

TABLES = {
    "theirs": "SELECT id, 100 / amount AS share FROM mallory.mine",
    "above": "SELECT id FROM totals",
    "free": "SELECT id FROM lines",
}


@pytest.fixture
def together(home: House) -> Iterator[tuple[House, Session, pytrickle.Client]]:
    """A group of totals, over orders, and theirs, over a table of mallory; above reads totals, free neither."""
    mallory = home.session("mallory")
    mallory.execute("CREATE TABLE mallory.mine (id integer, amount integer)")
    home.db.execute("GRANT mallory TO steward")
    home.etl.execute("CREATE TABLE lines (id integer)")
    with local_client(home.refresher) as (client, _):
        for name, query in TABLES.items():
            client.create_stream_table(name, query)
        client.create_refresh_group("pair", ["totals", "theirs"])
        assert {result.error for result in client.tick()} == {None}
        yield home, mallory, client


def _load(home: House) -> None:
    home.etl.execute("INSERT INTO orders VALUES (1, 5)")
    home.etl.execute("INSERT INTO lines VALUES (1)")


def _shown(home: House) -> dict[str, int]:
    return {name: ask(home.etl, f"SELECT count(*) FROM {name}")[0][0] for name in ("totals", "theirs", "above", "free")}


def test_a_row_on_which_one_member_fails_undoes_the_group_and_nothing_else(
    together: tuple[House, Session, pytrickle.Client],
) -> None:
    home, mallory, client = together
    _load(home)
    mallory.execute("INSERT INTO mallory.mine VALUES (1, 0)")
    results = {result.stream_table: result for result in client.tick()}
    assert results["public.free"].error is None
    assert _shown(home) == {"totals": 0, "theirs": 0, "above": 0, "free": 1}
    told = "SELECT error FROM pgtrickle.refresh_history('public.totals') WHERE error IS NOT NULL"
    assert "zero" not in str(ask(home.session("eve"), told))
    mallory.execute("UPDATE mallory.mine SET amount = 1")
    home.etl.execute("SELECT pgtrickle.resume_stream_table()")
    assert {result.error for result in client.tick()} == {None}
    assert _shown(home) == {"totals": 1, "theirs": 1, "above": 1, "free": 1}


def test_a_lock_on_the_source_of_one_member_holds_nothing_outside_the_group(
    together: tuple[House, Session, pytrickle.Client],
) -> None:
    home, mallory, client = together
    _load(home)
    with mallory.transaction():
        mallory.execute("INSERT INTO mallory.mine VALUES (1, 1)")
        mallory.execute("LOCK TABLE mallory.mine IN ACCESS EXCLUSIVE MODE")
        client.tick()
        assert _shown(home)["free"] == 1
    home.etl.execute("SELECT pgtrickle.resume_stream_table()")
    client.tick()
    assert _shown(home) == {"totals": 1, "theirs": 1, "above": 1, "free": 1}


def test_a_source_that_is_hidden_stops_its_member_and_nothing_outside_the_group(
    together: tuple[House, Session, pytrickle.Client],
) -> None:
    home, mallory, client = together
    mallory.execute("ALTER TABLE mallory.mine ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
    _load(home)
    results = {result.stream_table: result for result in client.tick()}
    assert results["public.free"].error is None
    assert results["public.theirs"].error is not None
    home.etl.execute("SELECT pgtrickle.drop_refresh_group('pair'); SELECT pgtrickle.resume_stream_table()")
    client.tick()
    assert _shown(home) == {"totals": 1, "theirs": 0, "above": 1, "free": 1}
