"""Rows that a query of Spark's reads several times: kept in memory, or held by the driver as values.

The plan of a query has in it the plans of all tables that it reads, kept in memory or not, and theirs in turn: of
tables that are computed from each other, Spark would look at each as often as there are ways to it. Values have no
plan. Over them Spark computes what it can while it plans, and leaves out what has no rows.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

# Values are sent to each task with the plan.
MOST_VALUES = 10_000

Hold = Callable[[DataFrame], DataFrame]


@contextmanager
def in_memory() -> Iterator[Hold]:
    """Keep the rows of frames in memory from their first use on, until the end."""
    kept: list[DataFrame] = []

    def hold(frame: DataFrame) -> DataFrame:
        kept.append(frame.cache())
        return kept[-1]

    try:
        yield hold
    finally:
        for frame in kept:
            frame.unpersist()


@contextmanager
def as_values() -> Iterator[Hold]:
    """Compute frames at once, and have the driver hold their rows, unless these are many."""
    with in_memory() as keep:

        def hold(frame: DataFrame) -> DataFrame:
            return _values(frame) or keep(frame)

        yield hold


def _values(frame: DataFrame) -> DataFrame | None:
    """Return the rows of a frame as values; None where there are too many."""
    rows = frame.limit(MOST_VALUES + 1).toArrow()
    return None if rows.num_rows > MOST_VALUES else frame.sparkSession.createDataFrame(rows, frame.schema)
