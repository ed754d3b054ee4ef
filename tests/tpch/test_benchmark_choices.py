"""The benchmark of AUTO's choices measures every mode in every round."""

from benchmarks.tpch.choices import MODES, Choices
from benchmarks.tpch.database import Database as Tpch
from benchmarks.tpch.queries import read_queries
from tests.conftest import Database
from tests.equivalence.local_engine import local_client


def test_every_mode_is_measured_in_every_round(db: Database) -> None:
    tpch = Tpch(db.connect(), 600)
    tpch.create()
    with local_client(db.dsn) as (client, _):
        choices = Choices(tpch, client, read_queries(["q01", "q06"]), MODES, lambda message: None)
        choices.create()
        choices.measure(5, 2)
    assert [(each.query, each.number) for each in choices.rounds] == [("q01", 1), ("q06", 1), ("q01", 2), ("q06", 2)]
    assert all(set(each.seconds) == {way.title for way in MODES} and each.view > 0 for each in choices.rounds)
    assert choices.unequal == set()
