"""Nexmark's queries equal their stream tables when Spark joins what it can."""

from typing import TYPE_CHECKING

import pytest

import pytrickle
from tests.conftest import Database
from tests.nexmark.house import QUERIES
from tests.nexmark.rounds import check_rounds
from tests.repeats import first

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The queries are held by test_nexmark.py, and Spark's joins by tests/spark/test_joins.py.
pytestmark = pytest.mark.long


@pytest.mark.parametrize("begin", first(0, range(2), then=1))
def test_every_query_equals_its_stream_table_through_spark(db: Database, spark: "SparkSession", begin: int) -> None:
    """Every other query in each run."""
    with pytrickle.connect(db.dsn, spark, small_delta_rows=0, direct_delta_rows=0) as client:
        check_rounds(db, client, 1, list(QUERIES)[begin::2])
