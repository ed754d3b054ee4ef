"""Which of the 22 TPC-H queries Spark joins with the engine `spark`, and which it leaves to PostgreSQL, and why."""

from random import Random

import pytrickle
from pytrickle.client.client import Client
from pytrickle.plan.placement import Place
from pytrickle.plan.refresh_plan import HANDED_ON
from pytrickle.plan.spark.sub_join import JOINED
from pytrickle.plan.tree import SUB_JOIN
from tests.conftest import Database
from tests.spark.test_operations import in_spark
from tests.tpch.shop import QUERIES, Shop

# What PostgreSQL computes of a whole refresh, and of a delta, although the engine is Spark; nothing of other queries.
NO_KEYS = "aggregate that has no keys"
CANCELLING = "rows that has no rule for Spark"
DISTINCT = "aggregate that calls an aggregate without a rule for Spark"
# Two sums of numerics, of which nobody knows the digits, are compared with each other.
OF_ANY_DIGITS = {"q11": f"{HANDED_ON}{JOINED}"}
LEFT_OF_WHOLE = {"q15": NO_KEYS, "q16": DISTINCT, "q22": CANCELLING, **OF_ANY_DIGITS}
# Of one table a delta reads the changes alone; in the last two it is the result of an operation of PostgreSQL's.
CHANGES_ALONE = dict.fromkeys(("q01", "q06"), f"{HANDED_ON}only buffered changes are read")
LEFT_OF_DELTA = {
    "q15": NO_KEYS,
    **OF_ANY_DIGITS,
    **CHANGES_ALONE,
    "q16": f"{HANDED_ON}{DISTINCT}",
    "q22": f"{HANDED_ON}{CANCELLING}",
}
LEFT = {(f"public.{name}", left) for each in (LEFT_OF_WHOLE, LEFT_OF_DELTA) for name, left in each.items()}
# What Spark computes below the joins.
OPERATIONS = {
    "q02": {"aggregate"},
    "q04": {"exists"},
    "q13": {"aggregate", "exists"},
    "q15": {"aggregate"},
    "q17": {"aggregate"},
    "q18": {"aggregate", "exists"},
    "q20": {"aggregate", "exists"},
    "q21": {"exists"},
}


def joined_by_spark(client: Client) -> set[str]:
    return {name for name in QUERIES if client.explain(name).data["place"] == Place.SPARK}


def left_to_postgresql(client: Client) -> dict[str, str]:
    told = {name: client.explain(name).data["engine_reason"].partition("; PostgreSQL computes ")[2] for name in QUERIES}
    return {name: left for name, left in told.items() if left}


def computed_by_spark(client: Client) -> dict[str, set[str]]:
    found = {name: in_spark(client, name) for name in QUERIES}
    return {name: operations for name, operations in found.items() if operations}


def test_spark_computes_all_of_all_queries_but_these(db: Database) -> None:
    shop = Shop(db.connect(), Random(6))
    shop.create()
    with pytrickle.connect(db.dsn, engine="spark") as client, pytrickle.connect(db.dsn, engine="postgres") as other:
        for name, query in QUERIES.items():
            client.create_stream_table(name, query)
        assert (left_to_postgresql(client), computed_by_spark(client)) == (LEFT_OF_WHOLE, OPERATIONS)
        assert joined_by_spark(client) == QUERIES.keys() - OF_ANY_DIGITS.keys()
        other.tick()
        shop.change(1)
        assert (left_to_postgresql(client), computed_by_spark(client)) == (LEFT_OF_DELTA, OPERATIONS)
        handed_on = {name for name, left in LEFT_OF_DELTA.items() if left.startswith(HANDED_ON)}
        assert joined_by_spark(client) == QUERIES.keys() - handed_on
        assert [name for name in QUERIES if SUB_JOIN in str(client.explain(name))] == []
