"""Who owns a partitioned source goes on making partitions of it, and can do nothing else with what that takes."""

from collections.abc import Iterator

import pytest

from pytrickle.client.client import Client
from tests.equivalence.local_engine import local_client
from tests.security.attempts import stopped
from tests.security.roles import House

TABLES = {
    "a table": "CREATE TABLE mallory.p (id integer, k integer, at timestamptz) PARTITION BY LIST (k)",
    "a partition": """
        CREATE TABLE mallory.above (id integer, k integer, at timestamptz) PARTITION BY LIST (k);
        CREATE TABLE mallory.p PARTITION OF mallory.above FOR VALUES IN (0, 1, 2) PARTITION BY LIST (k)
    """,
}
FIRST = "CREATE TABLE mallory.p0 PARTITION OF mallory.p FOR VALUES IN (0)"
ROWS = ("SELECT id, k FROM theirs ORDER BY 1", "SELECT id, k FROM mallory.p ORDER BY 1")


@pytest.fixture(params=TABLES)
def divided(home: House, request: pytest.FixtureRequest) -> Iterator[tuple[House, Client]]:
    """A stream table of steward over a partitioned table of mallory, whose rows are judged by their time."""
    mallory = home.session("mallory")
    mallory.execute(TABLES[request.param])
    mallory.execute(FIRST)
    home.db.execute("GRANT mallory TO steward; GRANT USAGE ON SCHEMA mallory TO PUBLIC")
    home.etl.execute("SELECT pgtrickle.create_stream_table('theirs', 'SELECT id, k FROM mallory.p')")
    home.etl.execute("SELECT pgtrickle.set_event_time('mallory.p', 'at', too_late => '1 day')")
    with local_client(home.refresher) as (client, _):
        yield home, client


def make_partitions(house: House, client: Client, role: str, number: int) -> None:
    """As its owner make a partition, fill it, take one off and put it back; the stream table follows."""
    owner = house.session(role)
    owner.execute(f"CREATE TABLE {role}.p{number} PARTITION OF mallory.p FOR VALUES IN ({number})")
    owner.execute(f"INSERT INTO mallory.p VALUES ({number}, {number})")
    owner.execute("ALTER TABLE mallory.p DETACH PARTITION mallory.p0")
    owner.execute("ALTER TABLE mallory.p ATTACH PARTITION mallory.p0 FOR VALUES IN (0)")
    owner.execute(f"INSERT INTO mallory.p VALUES ({number + 10}, 0)")
    client.tick()
    shown, there = map(house.db.execute, ROWS)
    assert shown == there
    assert (number, number) in there
    assert (number + 10, 0) in there


def test_partitions_are_made_by_the_owner_of_a_source_and_by_the_next_one(divided: tuple[House, Client]) -> None:
    house, client = divided
    make_partitions(house, client, "mallory", 1)
    house.session("heir", "mallory")
    house.db.execute("REVOKE mallory FROM heir; GRANT heir TO steward; GRANT USAGE ON SCHEMA heir TO PUBLIC")
    for name in ("above", "p", "p0", "p1"):
        house.db.execute(f"ALTER TABLE IF EXISTS mallory.{name} OWNER TO heir")
    client.tick()
    make_partitions(house, client, "heir", 2)


def test_what_was_granted_for_it_is_settled_and_serves_no_other_table(divided: tuple[House, Client]) -> None:
    house, client = divided
    assert house.etl.execute("SELECT pgtrickle_private.foreign_grants()").fetchall() == []
    house.etl.execute("SELECT pgtrickle.settle_grants()")
    make_partitions(house, client, "mallory", 1)
    granted = house.db.execute("SELECT callable::text FROM pgtrickle_private.partition_makers()")
    assert len(granted) > 1
    for role in ("mallory", "stranger"):
        session = house.session(role)
        session.execute(f"CREATE TABLE {role}.mine (id integer, k integer, at timestamptz)")
        for (function,) in granted:
            attack = f"CREATE TRIGGER t AFTER INSERT ON {role}.mine FOR EACH ROW EXECUTE FUNCTION {function}"
            assert stopped(session, attack) == "42501", function
