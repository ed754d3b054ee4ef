"""Nexmark's queries as stream tables through rounds of changes, and how each of them is refreshed.

Left out are those that are not a query over tables: q10 writes files, q11 and q12 form windows of a session and of the
time of processing.
"""

from random import Random

from pytrickle.client import Client
from tests.conftest import Database
from tests.equivalence.workload import Workload
from tests.nexmark.house import QUERIES, House

ROUNDS = 5

# The action of every refresh after the first.
ACTIONS = {
    "q00": "DIFFERENTIAL",
    "q01": "DIFFERENTIAL",
    "q02": "DIFFERENTIAL",
    "q03": "DIFFERENTIAL",
    "q04": "FULL",
    "q05": "FULL",
    "q06": "FULL",
    "q07": "FULL",
    "q08": "FULL",
    "q09": "FULL",
    "q13": "DIFFERENTIAL",
    "q14": "DIFFERENTIAL",
    "q15": "FULL",
    "q16": "FULL",
    "q17": "DIFFERENTIAL",
    "q18": "FULL",
    "q19": "FULL",
    "q20": "DIFFERENTIAL",
    "q21": "DIFFERENTIAL",
    "q22": "DIFFERENTIAL",
    "top_auctions": "FULL",
    "unsold": "FULL",
}


def check_rounds(db: Database, client: Client, seed: int) -> None:
    """Refresh and compare all queries after every round."""
    house = House(db.connect(), Random(seed))
    house.create()
    workload = Workload(db, client, QUERIES)
    workload.run(house.change, ROUNDS)
    workload.check(ACTIONS)
