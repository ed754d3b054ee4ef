"""What is undone within a transaction that goes on, though a limit that was set there ends while that is done."""

import pytest
from psycopg.errors import QueryCanceled

from pytrickle.database import undone
from tests.conftest import Database

# To undo so many tables takes longer than the limit.
MANY = "DO $$BEGIN FOR n IN 1 .. 300 LOOP EXECUTE format('CREATE TEMP TABLE many_%s (id int)', n); END LOOP; END$$"
LIMIT = "SET LOCAL statement_timeout = '1ms'"


def test_what_takes_longer_than_a_limit_set_within_is_undone_and_the_transaction_goes_on(db: Database) -> None:
    with db.connect() as connection, connection.transaction():
        with undone(connection):
            connection.execute(MANY)
            connection.execute(LIMIT)
        assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)
        assert connection.execute("SELECT to_regclass('many_1')").fetchone() == (None,)


def test_a_statement_that_takes_too_long_is_undone(db: Database) -> None:
    with db.connect() as connection, connection.transaction():
        with pytest.raises(QueryCanceled), undone(connection):
            connection.execute(LIMIT)
            connection.execute("SELECT pg_sleep(1)")
        assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)
