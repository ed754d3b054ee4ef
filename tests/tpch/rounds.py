"""The 22 queries as stream tables through rounds of changes, and how each of them is refreshed."""

from random import Random

from pytrickle.client import Client
from tests.conftest import Database
from tests.equivalence.workload import Workload
from tests.tpch.shop import QUERIES, Shop

ROUNDS = 5
FEWEST_CHANGES = 3

# The action of every refresh after the first.
ACTIONS = {
    "q01": "DIFFERENTIAL",
    "q02": "FULL",
    "q03": "FULL",
    "q04": "FULL",
    "q05": "DIFFERENTIAL",
    "q06": "DIFFERENTIAL",
    "q07": "DIFFERENTIAL",
    "q08": "DIFFERENTIAL",
    "q09": "DIFFERENTIAL",
    "q10": "FULL",
    "q11": "FULL",
    "q12": "DIFFERENTIAL",
    "q13": "FULL",
    "q14": "DIFFERENTIAL",
    "q15": "FULL",
    "q16": "FULL",
    "q17": "FULL",
    "q18": "FULL",
    "q19": "DIFFERENTIAL",
    "q20": "FULL",
    "q21": "FULL",
    "q22": "FULL",
}


def check_rounds(db: Database, client: Client, seed: int) -> None:
    """Refresh and compare all queries after every round; fail too where a query had little to show."""
    shop = Shop(db.connect(), Random(seed))
    shop.create()
    workload = Workload(db, client, QUERIES)
    workload.create()
    for _ in range(ROUNDS):
        shop.change()
        workload.refresh()
    assert workload.ran() == ACTIONS
    assert [name for name in QUERIES if not workload.shown[0][name]] == []
    assert [name for name in QUERIES if workload.changes(name) < FEWEST_CHANGES] == []
    assert [name for name in QUERIES if not client.verify(name).matches] == []
