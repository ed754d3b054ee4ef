"""Delta terms as DataFrames: leaves read once, joined on carriers, netted by content."""

from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import broadcast, col, expr
from pyspark.sql.functions import sum as total

from pytrickle.compute.spark.jdbc import PinnedReader, ctid_ranges
from pytrickle.plan.placement import PLANNER, SETTINGS, Place
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.spark.grouping import SparkGrouping
from pytrickle.plan.spark.reads import Frame, SparkLeaf
from pytrickle.plan.spark.terms import SparkTerm

# Up to so many changed rows every task keeps them in memory; beyond, Spark shuffles both sides and spills.
BROADCAST_ROWS = 500_000
PAGES_PER_RANGE = 8192
MAX_RANGES = 16


@dataclass(slots=True)
class Frames:
    """Reads every frame of a plan once, and keeps the frames that several terms use.

    The terms begin with so many changed rows, or with a whole table if `delta_rows` is None.
    """

    reader: PinnedReader
    terms: tuple[SparkTerm, ...]
    delta_rows: int | None
    grouping: SparkGrouping | None = None
    read: dict[str, DataFrame] = field(default_factory=dict)
    kept: list[DataFrame] = field(default_factory=list)

    def rows(self) -> DataFrame:
        """Return the weighted rows of all terms, netted by content, or the parts of groups that they make."""
        joined = reduce(DataFrame.unionByName, [self._term(term) for term in self.terms])
        return group(joined, self.grouping) if self.grouping else consolidate(joined)

    def release(self) -> None:
        """Forget what was kept."""
        for frame in self.kept:
            frame.unpersist()

    def _term(self, term: SparkTerm) -> DataFrame:
        leaves = [
            self._leaf(leaf).select(*[col(name).alias(f"l{i}_{name}") for name in self._leaf(leaf).columns])
            for i, leaf in enumerate(term.leaves)
        ]
        # The delta leads; where it fits into memory the tables need no shuffle.
        small = self.delta_rows is not None and self.delta_rows <= BROADCAST_ROWS
        joined = broadcast(leaves[0]) if small else leaves[0]
        for i, leaf in enumerate(leaves[1:], 1):
            condition = _condition(term.keys[i], i)
            joined = joined.join(leaf, condition, "inner") if condition is not None else joined.crossJoin(leaf)
        weight = reduce(Column.__mul__, [col(f"l{i}_{WEIGHT}").cast("bigint") for i in range(len(leaves))])
        weight = -weight if term.negated else weight
        output = [col(f"l{leaf}_{column}").alias(name) for name, leaf, column in term.output]
        return joined.select(*output, weight.alias(WEIGHT))

    def _leaf(self, leaf: SparkLeaf) -> DataFrame:
        return reduce(DataFrame.unionByName, [self._frame(frame) for frame in leaf.frames])

    def _frame(self, frame: Frame) -> DataFrame:
        if frame.sql not in self.read:
            self.read[frame.sql] = self._load(frame)
        result = self.read[frame.sql]
        return result.withColumn(WEIGHT, -col(WEIGHT)) if frame.negated else result

    def _load(self, frame: Frame) -> DataFrame:
        if frame.pages is None:
            loaded = self.reader.read(frame.sql, PLANNER + SETTINGS[Place.POSTGRES])
        else:
            parts = min(MAX_RANGES, max(1, frame.pages // PAGES_PER_RANGE))
            loaded = self.reader.read_ranges(frame.sql, ctid_ranges(frame.pages, parts))
        if self._uses(frame) < 2:
            return loaded
        loaded = loaded.persist()
        self.kept.append(loaded)
        return loaded

    def _uses(self, frame: Frame) -> int:
        return sum(other.sql == frame.sql for term in self.terms for leaf in term.leaves for other in leaf.frames)


def consolidate(rows: DataFrame) -> DataFrame:
    """Net weighted rows by content and drop what cancels out; NULLs are equal, text is compared bytewise."""
    columns = [name for name in rows.columns if name != WEIGHT]
    return rows.groupBy(*columns).agg(total(WEIGHT).alias(WEIGHT)).where(col(WEIGHT) != 0)


def group(rows: DataFrame, grouping: SparkGrouping) -> DataFrame:
    """Take the aggregates of weighted rows; all values of the result are texts."""
    source = consolidate(rows) if grouping.netted else rows
    parts = source.groupBy(*grouping.by).agg(*[expr(sql).alias(name) for name, sql in grouping.aggregates])
    return parts.select(*[col(name).cast("string").alias(name) for name in grouping.columns])


def _condition(keys: tuple[tuple[str, int, str], ...], position: int) -> Column | None:
    tests = [col(f"l{position}_{own}") == col(f"l{leaf}_{other}") for own, leaf, other in keys]
    return reduce(Column.__and__, tests) if tests else None
