"""Which of the 22 TPC-H queries Spark joins with the engine `spark`, and which it leaves to PostgreSQL, and why."""

from random import Random

import pytrickle
from pytrickle.client.client import Client
from pytrickle.plan.placement import Place
from pytrickle.plan.tree import SUB_JOIN
from tests.conftest import Database
from tests.spark.test_operations import in_spark
from tests.tpch.shop import QUERIES, Shop

# Two sums of numerics, of which nobody knows the digits, are compared with each other.
OF_ANY_DIGITS = {"q11"}
# One table, of which a delta reads the changes alone.
CHANGES_ALONE = {"q01", "q06"}
# The result of an operation, whose delta PostgreSQL computes.
OPERATIONS = {"q16", "q22"}


def joined_by_spark(client: Client) -> set[str]:
    return {name for name in QUERIES if client.explain(name).data["place"] == Place.SPARK}


def test_spark_joins_all_queries_but_these(db: Database) -> None:
    shop = Shop(db.connect(), Random(6))
    shop.create()
    with pytrickle.connect(db.dsn, engine="spark") as client, pytrickle.connect(db.dsn, engine="postgres") as other:
        for name, query in QUERIES.items():
            client.create_stream_table(name, query)
        assert joined_by_spark(client) == QUERIES.keys() - OF_ANY_DIGITS
        other.tick()
        shop.change(1)
        assert joined_by_spark(client) == QUERIES.keys() - OF_ANY_DIGITS - CHANGES_ALONE - OPERATIONS
        # The revenue of suppliers, a sum of price * (1 - discount).
        assert in_spark(client, "q15") == {"aggregate"}
        assert [name for name in QUERIES if SUB_JOIN in str(client.explain(name))] == []
        assert "PostgreSQL computes every part of it, Spark hands on the rows" in str(client.explain("q11"))
