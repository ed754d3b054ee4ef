"""J12: rows and their partners go together and come back, a hundred times."""

from random import Random

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.runs import disable_jit
from tests.equivalence.test_scenarios import TABLES

CYCLES = 100
QUERY = "SELECT l.id, r.id AS other, l.v, r.t FROM l LEFT JOIN r ON l.k = r.k"


def test_a_hundred_cycles_of_random_co_deletes(db: Database) -> None:
    rng = Random(12)
    disable_jit(db)
    for statement in TABLES:
        db.execute(statement)
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        client.create_stream_table("pairs", QUERY, refresh_mode="DIFFERENTIAL")
        for cycle in range(CYCLES):
            db.execute("; ".join(_cycle(rng, cycle)))
            assert [result.error for result in client.tick() if result.error] == []
            assert not differences(connection, "pairs", QUERY, True), f"cycle {cycle}"
        assert client.verify("pairs").matches


def _cycle(rng: Random, cycle: int) -> list[str]:
    """Delete some keys from both tables, in any order, and insert rows of some keys, perhaps the same ones."""
    gone = ", ".join(map(str, rng.sample(range(5), 2)))
    deletions = [f"DELETE FROM {table} WHERE k IN ({gone}) AND id % 3 <> {rng.randrange(4)}" for table in "lr"]
    insertions = [
        f"INSERT INTO {table} SELECT {3 * cycle} + n, {rng.randrange(5)}, {rng.randrange(9)}, 't{rng.randrange(3)}' "
        f"FROM generate_series(1, {rng.randrange(4)}) AS n"
        for table in "lr"
    ]
    statements = deletions + insertions
    rng.shuffle(statements)
    return statements
