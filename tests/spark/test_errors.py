"""What Spark fails with becomes one sentence that names the cause, not what awaited it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytrickle.errors import SparkFailed
from pytrickle.execute.run import translated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_sentence_is_the_cause(spark: SparkSession) -> None:
    failing = spark.range(10).repartition(2).selectExpr("raise_error('disk failure') AS v").groupBy("v").count()
    with pytest.raises(SparkFailed) as failed, translated():
        failing.toArrow()
    said = "Spark could not compute the refresh: [USER_RAISED_EXCEPTION] disk failure SQLSTATE: P0001"
    assert failed.value.message == said
