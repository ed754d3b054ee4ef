"""Nexmark's queries as stream tables through rounds of changes, and how each of them is refreshed.

Left out are those that are not a query over tables: q10 writes files, q11 and q12 form windows of a session and of the
time of processing.
"""

from random import Random

from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.workload import Workload
from tests.nexmark.house import QUERIES, House

ROUNDS = 5

# The action of every refresh after the first.
ACTIONS = dict.fromkeys(QUERIES, "DIFFERENTIAL")


def check_rounds(db: Database, client: Client, seed: int) -> None:
    """Refresh and compare all queries after every round."""
    house = House(db.connect(), Random(seed))
    house.create()
    workload = Workload(db, client, QUERIES)
    workload.run(house.change, ROUNDS)
    workload.check(ACTIONS)
