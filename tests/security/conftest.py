"""Every attack is tried on the oldest and on the newest supported PostgreSQL."""

import pytest

from tests.conftest import Database
from tests.security.roles import House, owner_of_a_catalog


@pytest.fixture
def house(every_db: Database) -> House:
    """A catalog that belongs to a role of its own, with an empty table that loaders fill."""
    house = House(every_db, owner_of_a_catalog(every_db, "etl"))
    house.etl.execute("CREATE TABLE orders (id integer PRIMARY KEY, amount integer, at timestamptz)")
    return house
