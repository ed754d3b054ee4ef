"""The 22 queries as stream tables through rounds of changes, and how each of them is refreshed."""

from random import Random

from pytrickle.client import Client
from tests.conftest import Database
from tests.equivalence.workload import Workload
from tests.tpch.shop import QUERIES, Shop

ROUNDS = 5

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
    """Refresh and compare all queries after every round."""
    shop = Shop(db.connect(), Random(seed))
    shop.create()
    workload = Workload(db, client, QUERIES)
    workload.run(shop.change, ROUNDS)
    workload.check(ACTIONS)
