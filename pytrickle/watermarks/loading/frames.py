"""The column of event times of a table of Arrow or a frame of pandas, as a generator takes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytrickle.errors import InvalidArgument


def times(frame: Any, name: str) -> Any:
    """Return a column as `Generator.observe_batch` takes it; raise InvalidArgument for pandas' other than moments.

    A column of pandas must have a time zone: without one its meaning would be up to the database's session.
    """
    column = frame[name]
    if type(frame).__module__.partition(".")[0] != "pandas" or _has_zone(getattr(column, "dtype", None)):
        return column
    raise InvalidArgument(
        f"The column {name} is not of timestamps with a time zone.",
        f"Convert it: frame[{name!r}] = pandas.to_datetime(frame[{name!r}], utc=True).",
    )


def by_partition(frame: Any, event_time: str, partition: str) -> Iterator[tuple[Any, Any]]:
    """Yield each value of the column `partition` with the event times of its rows, as `times` returns them."""
    if type(frame).__module__.partition(".")[0] == "pandas":
        for value, rows in frame.groupby(partition, dropna=False, sort=False):
            # What is missing in a column of pandas does not equal itself.
            yield (value if value == value else None), times(rows, event_time)
        return
    import pyarrow.compute as pc

    column = frame[partition]
    for value in column.unique():
        chosen = pc.is_null(column) if not value.is_valid else pc.equal(column, value)
        yield value.as_py(), times(frame.filter(chosen), event_time)


def _has_zone(dtype: Any) -> bool:
    """Return whether a type of pandas, its own or Arrow's, is one of timestamps with a time zone."""
    return getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None) is not None
