"""JDBC reads pinned to an exported snapshot, on any executor of any cluster."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from pytrickle.database import JdbcTarget, jdbc_text, path_set
from pytrickle.plan.spark.reads import CTID

# Without a fetch size Spark leaves the connection in autocommit mode: the session statement's transaction is over
# before the query runs, and the read silently sees current data instead of the snapshot.
FETCH_SIZE = "10000"


@dataclass(frozen=True, slots=True)
class PinnedReader:
    """Reads queries in one exported snapshot under one set of session settings (statements).

    Each option is a call to Spark's driver, so queries with the same planner settings share a reader.
    """

    spark: SparkSession
    target: JdbcTarget
    snapshot: str
    settings: tuple[str, ...]
    fetch_size: str = FETCH_SIZE
    _readers: dict[tuple[str, ...], DataFrameReader] = field(default_factory=dict)

    def read(self, query: str, planner: Sequence[str] = ()) -> DataFrame:
        """Return the rows of one query, read by one connection under further planner settings."""
        return self._reader(planner).option("dbtable", _table(query)).load()

    def read_ranges(self, query: str, ranges: Sequence[str], planner: Sequence[str] = ()) -> DataFrame:
        """Return the rows of a query that exposes its ctid, one connection for every range predicate."""
        reader = self._reader(planner)
        return reader.jdbc(self.target.url, _table(query), predicates=list(ranges))

    def _reader(self, planner: Sequence[str]) -> DataFrameReader:
        """Return the reader with all options but the query, which a read copies from it."""
        if tuple(planner) not in self._readers:
            options = self._options(self._statements(planner))
            self._readers[tuple(planner)] = self.spark.read.format("jdbc").options(**options)
        return self._readers[tuple(planner)]

    def _options(self, statements: list[str]) -> dict[str, str]:
        return {
            **self.target.properties,
            "url": self.target.url,
            "sessionInitStatement": jdbc_text("; ".join(statements)),
            "fetchsize": self.fetch_size,
            # Spark asks for the columns of a query in a session of its own, which gets no other settings.
            "currentSchema": path_set(statements),
        }

    def _statements(self, planner: Sequence[str]) -> list[str]:
        pin = [
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
            f"SET TRANSACTION SNAPSHOT '{self.snapshot}'",
        ]
        unlimited = [f"SET LOCAL {name} = 0" for name in self.target.limits]
        return [*pin, *unlimited, *self.settings, *planner]


def _table(query: str) -> str:
    return f"({jdbc_text(query)}) AS pgt_read"


def ctid_ranges(pages: int, parts: int) -> tuple[str, ...]:
    """Split a table of so many pages into predicates on ctid; the last one is open, for pages added since.

    >>> ctid_ranges(10, 2)
    ("pgt_ctid >= '(0,0)'::tid AND pgt_ctid < '(5,0)'::tid", "pgt_ctid >= '(5,0)'::tid")
    """
    step = max(1, -(-pages // parts))
    starts = list(range(0, max(pages, 1), step))
    lower = [f"{CTID} >= '({start},0)'::tid" for start in starts]
    upper = [f" AND {CTID} < '({start},0)'::tid" for start in starts[1:]] + [""]
    return tuple(low + high for low, high in zip(lower, upper, strict=True))
