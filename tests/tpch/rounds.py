"""The 22 queries as stream tables through rounds of changes, and how each of them is refreshed."""

from collections.abc import Iterable
from random import Random

from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.workload import Workload
from tests.tpch.shop import QUERIES, Shop

ROUNDS = 5

# The action of every refresh after the first.
ACTIONS = dict.fromkeys(QUERIES, "DIFFERENTIAL")


def check_rounds(db: Database, client: Client, seed: int, names: Iterable[str] = tuple(QUERIES)) -> None:
    """Refresh and compare the queries, all unless some are named, after every round."""
    shop = Shop(db.connect(), Random(seed))
    shop.create()
    chosen = {name: QUERIES[name] for name in names}
    workload = Workload(db, client, chosen)
    workload.run(shop.change, ROUNDS)
    workload.check({name: ACTIONS[name] for name in chosen})
