"""A query in Spark's SQL as a DataFrame: every frame is read once, and named for as long as the query runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql.functions import col
from pyspark.sql.functions import sum as total

from pytrickle.compute.spark.held import as_values, in_memory
from pytrickle.compute.spark.jdbc import PinnedReader, ctid_ranges
from pytrickle.plan.placement import PLANNER, SETTINGS, Place
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.spark.leaves import Frame
from pytrickle.plan.spark.query import SparkQuery
from pytrickle.plan.spark.reads import CTID

BY_PLACE = ("SET LOCAL enable_indexscan = off", "SET LOCAL enable_bitmapscan = off")


@contextmanager
def result_of(query: SparkQuery, reader: PinnedReader) -> Iterator[DataFrame]:
    """Read the frames of a query, each once, and hold those that it reads several times; forget them at the end."""
    # Several lanes share a session, so that nobody else may have this name.
    views = {name: f"pgt_{uuid4().hex}" for name in (*query.frames, *query.computed)}
    try:
        # By Spark Connect, what is kept in memory is found by the views that it was computed from.
        with as_values() if query.held else in_memory() as hold:
            for name, frame in query.frames.items():
                rows = _load(reader, frame)
                held = hold(_without_ctid(rows, frame)) if name in query.kept else rows
                held.createOrReplaceTempView(views[name])
            for name, template in query.computed.items():
                hold(reader.spark.sql(template.format(**views))).createOrReplaceTempView(views[name])
            yield reader.spark.sql(query.template.format(**views))
    finally:
        for view in views.values():
            reader.spark.catalog.dropTempView(view)


def _load(reader: PinnedReader, frame: Frame) -> DataFrame:
    """Read a frame; what one connection reads is declared as one partition, and is joined and grouped in its task."""
    planner = PLANNER + SETTINGS[Place.INDEX if frame.looked_up else Place.POSTGRES]
    if not frame.parts:
        return reader.read(frame.sql, planner).coalesce(1)
    # By the index that a change buffer has, each part would read all changes.
    planner += BY_PLACE if frame.weighted else ()
    rows = reader.read_ranges(frame.sql, ctid_ranges(frame.pages, frame.parts), planner)
    return rows.coalesce(1) if frame.parts == 1 else rows


def _without_ctid(rows: DataFrame, frame: Frame) -> DataFrame:
    return rows.drop(CTID) if frame.parts else rows


def consolidate(rows: DataFrame) -> DataFrame:
    """Add up the weights of equal rows and drop what cancels out; NULLs are equal, text is compared bytewise.

    The keys are asked for beside the sum: a session may leave them out (`spark.sql.retainGroupColumns`).
    """
    names = {f"pgt_key{i}": name for i, name in enumerate(each for each in rows.columns if each != WEIGHT)}
    keys = (col(name).alias(key) for key, name in names.items())
    summed = rows.groupBy(*names.values()).agg(total(WEIGHT).alias(WEIGHT), *keys).where(col(WEIGHT) != 0)
    return summed.select(*(col(key).alias(name) for key, name in names.items()), WEIGHT)
