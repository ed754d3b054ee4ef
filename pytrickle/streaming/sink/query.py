"""The watermark that a streaming query declares for itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from py4j.protocol import Py4JError
from pyspark.errors import PySparkAttributeError, PySparkNotImplementedError
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pytrickle.errors import InvalidArgument
from pytrickle.watermarks import Generator
from pytrickle.watermarks import event_time as newest

# Where Spark notes the delay of withWatermark, on the column that it was called for.
_DELAY = "spark.watermarkDelayMs"
# Named in the lineage of all that stateful operators give.
_STATE = b"StateStore"
_QUERY = "sql.streaming.queryId"
# What is raised through Spark Connect, where the session is missing or of another kind.
_UNSEEN = (PySparkAttributeError, PySparkNotImplementedError)


def generator_of(schema: StructType, event_time: str | None) -> Generator:
    """Return a generator with the delay of the query's own `withWatermark`; raise InvalidArgument as `delay_of` does.

    Where the query keeps state its rows may come later than that; see `check_stateless`.
    """
    return newest(delay_of(schema, event_time))


def delay_of(schema: StructType, event_time: str | None) -> timedelta:
    """Return the delay of the query's own `withWatermark`, found on the column of event times.

    Raises InvalidArgument where the query declares none.
    """
    delay = schema[event_time].metadata.get(_DELAY) if event_time in schema.fieldNames() else None
    if delay is None:
        raise InvalidArgument(
            f"The query declares no watermark on the column {event_time}.",
            "Call withWatermark for the column that event_time names, or give the sink a generator.",
        )
    return timedelta(milliseconds=delay)


def check_stateless(frame: DataFrame) -> None:
    """Refuse a micro-batch of a query that keeps state, whose rows come later than `withWatermark` says.

    A join gives rows that are older than its watermark by as much as its interval. Through Spark Connect nobody sees
    whether there is state, and nothing is refused. Raises InvalidArgument.
    """
    try:
        lineage = frame.rdd.toDebugString()
    except _UNSEEN:
        return
    if lineage is not None and _STATE in lineage:
        raise InvalidArgument(
            "The query keeps state, as joins and aggregations do, so its rows may come later than withWatermark says.",
            "Give the sink a generator that allows for it: for an inner join, one of the delay plus the interval.",
        )


def check_output_mode(frame: DataFrame) -> None:
    """Refuse a micro-batch of a query that does not only append: it brings rows again that the sink could not replace.

    Through Spark Connect nobody sees the output mode, and nothing is refused. Raises InvalidArgument.
    """
    mode = _output_mode(frame)
    if mode not in {None, "append"}:
        raise InvalidArgument(
            f"The output mode is {mode}: it brings changed rows again, and the sink has no key to replace them by.",
            "Use outputMode('append'), with withWatermark where the query aggregates.",
        )


def _output_mode(frame: DataFrame) -> str | None:
    # The session of a micro-batch is a copy that knows of no queries; what it shares with the others does.
    try:
        session = frame.sparkSession
        own = session.sparkContext.getLocalProperty(_QUERY)
        queries = session._jsparkSession.sharedState().activeStreamingQueries().values()
        modes = [query.outputMode().toString() for query in queries if query.id().toString() == own]
    except (*_UNSEEN, Py4JError):
        return None
    return modes[0].lower() if modes else None


def check_columns(columns: Sequence[str], **named: str | None) -> None:
    """Raise InvalidArgument unless the query has the columns that these options name."""
    for option, name in named.items():
        if name is not None and name not in columns:
            raise InvalidArgument(f"The query has no column {name}.", f"Let {option} name one of {', '.join(columns)}.")
