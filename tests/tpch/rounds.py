"""The 22 queries as stream tables through rounds of changes, and how each of them is refreshed."""

from random import Random

from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.workload import Workload
from tests.tpch.shop import QUERIES, Shop

ROUNDS = 5

# The action of every refresh after the first.
ACTIONS = dict.fromkeys(QUERIES, "DIFFERENTIAL")


def check_rounds(db: Database, client: Client, seed: int) -> None:
    """Refresh and compare all queries after every round."""
    shop = Shop(db.connect(), Random(seed))
    shop.create()
    workload = Workload(db, client, QUERIES)
    workload.run(shop.change, ROUNDS)
    workload.check(ACTIONS)
