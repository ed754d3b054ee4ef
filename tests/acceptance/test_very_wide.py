"""Stream tables of very many columns, of which the expression of an index cannot name all before PostgreSQL 18."""

from tests.conftest import Database
from tests.equivalence.local_engine import local_client

COLUMNS = [f"c{number}" for number in range(600)]


def test_a_table_of_very_many_columns_is_followed(every_db: Database) -> None:
    every_db.execute(f"CREATE TABLE wide (id int PRIMARY KEY, {', '.join(f'{name} smallint' for name in COLUMNS)})")
    every_db.execute("INSERT INTO wide (id, c1, c599) SELECT n, 1, n % 3 FROM generate_series(1, 9) AS n")
    queries = {
        "copied": "SELECT * FROM wide",
        "without_key": f"SELECT {', '.join(COLUMNS)} FROM wide",
        "grouped": f"SELECT {', '.join(COLUMNS)}, count(*) AS n FROM wide GROUP BY {', '.join(COLUMNS)}",
    }
    with local_client(every_db.dsn) as (client, _):
        for name, query in queries.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        assert {(result.action, result.error) for result in client.tick()} == {("FULL", None)}
        for change in (
            "UPDATE wide SET c599 = c599 + 1 WHERE id < 4",
            "DELETE FROM wide WHERE id IN (2, 9)",
            "INSERT INTO wide (id, c1, c599) VALUES (20, 1, 0), (21, NULL, NULL)",
        ):
            every_db.execute(change)
            assert {(result.action, result.error) for result in client.tick()} == {("DIFFERENTIAL", None)}
            assert all(found.matches for found in client.verify())
