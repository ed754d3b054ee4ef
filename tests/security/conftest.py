"""Every attack is tried on the oldest supported PostgreSQL, and in the long runs on the newest too."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from pytrickle.catalog import install as migrate
from tests.conftest import Database, fresh
from tests.repeats import first
from tests.security.roles import ORDERS, House, owner_of_a_catalog
from tests.servers import NEWEST, OLDEST, Server

HOUSE = "pytrickle_house"


@pytest.fixture
def house(every_db: Database) -> House:
    """A catalog that belongs to a role of its own, with an empty table that loaders fill."""
    house = House(every_db, owner_of_a_catalog(every_db, "etl"))
    house.etl.execute(ORDERS)
    return house


@pytest.fixture(scope="session")
def furnished(servers: Callable[[int], Server]) -> Callable[[int], Server]:
    """Return the server of a version, with a template of a house whose catalog belongs to steward."""
    done: set[int] = set()

    def server(version: int) -> Server:
        found = servers(version)
        if version not in done:
            done.add(version)
            _furnish(found)
        return found

    return server


def _furnish(server: Server) -> None:
    with psycopg.connect(server.create(HOUSE), autocommit=True) as connection:
        connection.execute("CREATE ROLE steward LOGIN")
        connection.execute(f"ALTER DATABASE {HOUSE} OWNER TO steward")
        connection.execute("GRANT ALL ON SCHEMA public TO steward")
        connection.execute("SET ROLE steward")
        migrate.install(connection)
        connection.execute(ORDERS)
        connection.execute("SELECT pgtrickle.create_stream_table('totals', 'SELECT id, amount FROM orders')")
    server.close(HOUSE)


@pytest.fixture(params=first(1, (OLDEST, NEWEST)), ids=lambda version: f"pg{version}")
def home(furnished: Callable[[int], Server], request: pytest.FixtureRequest) -> Iterator[House]:
    """A house that is copied, which is quick: its catalog, orders and the stream table totals belong to steward."""
    with fresh(furnished(request.param), HOUSE) as database:
        yield House(database, database.connect(user="steward"), "steward")
