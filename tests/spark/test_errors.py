"""What Spark fails with becomes one sentence that names the cause, not what awaited it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytrickle.compute.spark.jdbc import PinnedReader
from pytrickle.compute.spark.run import translated
from pytrickle.database import exported_snapshot, jdbc_target
from pytrickle.errors import EvaluationFailed, SparkFailed
from tests.conftest import Database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_sentence_is_the_cause(spark: SparkSession) -> None:
    failing = spark.range(10).repartition(2).selectExpr("raise_error('disk failure') AS v").groupBy("v").count()
    with pytest.raises(SparkFailed) as failed, translated():
        failing.toArrow()
    said = "Spark could not compute the refresh: [USER_RAISED_EXCEPTION] disk failure SQLSTATE: P0001"
    assert failed.value.message == said


def test_value_that_reads_like_a_lack_of_memory_is_a_value(db: Database, spark: SparkSession) -> None:
    db.execute("CREATE TABLE notes (note text)")
    db.execute("INSERT INTO notes VALUES ('java.lang.OutOfMemoryError')")
    with exported_snapshot(db.dsn) as snapshot, pytest.raises(EvaluationFailed) as failed, translated():
        reader = PinnedReader(spark, jdbc_target(db.connect()), snapshot.name, ())
        reader.read("SELECT CAST(note AS int) AS number FROM public.notes").toArrow()
    refusal = 'invalid input syntax for type integer: "java.lang.OutOfMemoryError"'
    assert failed.value.message == f"Spark could not compute the refresh: {refusal}"
