"""What PostgreSQL's planner is asked: a cost that tells queries apart, under the settings of the refresh."""

from pytrickle.catalog.query_cost import query_cost
from tests.conftest import Database

SETTINGS = ("SET LOCAL enable_seqscan = off", "SET LOCAL max_parallel_workers_per_gather = 0")


def test_a_query_of_more_rows_costs_more_and_nothing_is_left_behind(every_db: Database) -> None:
    every_db.execute("CREATE TABLE t AS SELECT i AS k FROM generate_series(1, 10000) AS i")
    every_db.execute("ANALYZE t")
    with every_db.connect() as connection:
        few = query_cost(connection, "SELECT FROM t LIMIT 10", ())
        many = query_cost(connection, "SELECT FROM t", ())
        assert few and many and many > 100 * few
        # There is no index: a step that is switched off must be taken.
        forced = query_cost(connection, "SELECT FROM t", SETTINGS)
        assert forced and forced < 2 * many
        assert connection.execute("SHOW enable_seqscan").fetchone() == ("on",)


def test_a_query_that_cannot_be_planned_has_no_cost_and_breaks_no_transaction(db: Database) -> None:
    with db.connect() as connection, connection.transaction():
        assert query_cost(connection, "SELECT 1 / 0", ()) is None
        assert connection.execute("SELECT 1").fetchone() == (1,)
    with db.connect() as connection, connection.transaction(), connection.pipeline():
        assert query_cost(connection, "SELECT 1 / 0", ()) is None
        assert query_cost(connection, "SELECT 1", SETTINGS)
        assert connection.execute("SELECT 1").fetchone() == (1,)
