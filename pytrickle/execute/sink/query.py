"""The watermark that a streaming query declares for itself."""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql.types import StructType

from pytrickle.errors import InvalidArgument
from pytrickle.watermarks import Generator
from pytrickle.watermarks import event_time as newest

# Where Spark notes the delay of withWatermark, on the column that it was called for.
_DELAY = "spark.watermarkDelayMs"


def generator_of(schema: StructType, event_time: str | None) -> Generator:
    """Return a generator with the delay of the query's own `withWatermark`, found on the column of event times.

    Raises InvalidArgument where the query has none.
    """
    delay = schema[event_time].metadata.get(_DELAY) if event_time in schema.fieldNames() else None
    if delay is None:
        raise InvalidArgument(
            f"The query declares no watermark on the column {event_time}.",
            "Call withWatermark for the column that event_time names, or give the sink a generator.",
        )
    return newest(timedelta(milliseconds=delay))
