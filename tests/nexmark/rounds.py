"""Nexmark's queries as stream tables through rounds of changes, and how each of them is refreshed.

Left out are those that are not a query over tables: q10 writes files, q11 and q12 form windows of a session and of the
time of processing.
"""

from collections.abc import Iterable
from random import Random

from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.workload import Workload
from tests.nexmark.house import QUERIES, House

ROUNDS = 5

# The action of every refresh after the first.
ACTIONS = dict.fromkeys(QUERIES, "DIFFERENTIAL")


def check_rounds(db: Database, client: Client, seed: int, names: Iterable[str] = tuple(QUERIES)) -> None:
    """Refresh and compare the queries, all unless some are named, after every round."""
    house = House(db.connect(), Random(seed))
    house.create()
    chosen = {name: QUERIES[name] for name in names}
    workload = Workload(db, client, chosen)
    workload.run(house.change, ROUNDS)
    workload.check({name: ACTIONS[name] for name in chosen})
