"""Columns of event times, of NumPy, Arrow or pandas, as whole microseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytrickle.errors import InvalidArgument, PackageMissing
from pytrickle.watermarks.instant import HIGHEST, LOWEST

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]
    Mask = NDArray[np.bool_]

_NOT_A_TIME = -(2**63)
_TAKES = "Give datetime64 values of NumPy, or timestamps of Arrow or pandas that have a time zone."
_COMMON = "Convert it: values.astype('datetime64[us]')."
# Ten times the calendar: wide enough for every usable value, narrow enough that a cast to microseconds cannot wrap.
_YEARS = ("-90000-01-01", "+90000-01-01")
_FINER = ("ns", "ps", "fs", "as")


def numpy() -> Any:
    """Return the module NumPy; raise PackageMissing where it is not installed."""
    try:
        import numpy as np
    except ModuleNotFoundError:
        hint = "Install it: pip install 'pytrickle-postgres[arrays]'. Single rows need nothing."
        raise PackageMissing("Columns of event times need NumPy.", hint) from None
    return np


def column(values: Any) -> tuple[Counts, Mask | None]:
    """Return event times in microseconds since 1970, and which of them are usable, None for all.

    ``datetime64`` of any unit is UTC, as NumPy means it; the moments of Arrow, pandas, and of others that offer theirs
    as Arrow's, must have a time zone, those without are some local time. Unusable is what `placed` calls so: null,
    masked, NaT, outside of the calendar. What is finer than a microsecond is rounded down, so a watermark never claims
    more for it. Raises InvalidArgument for everything else.
    """
    np = numpy()
    moments = _from_arrow(values)
    found = values if moments is None else _from_counts(np, moments)
    if not isinstance(found, np.ndarray) or found.dtype.kind != "M" or found.ndim != 1:
        raise InvalidArgument(f"{type(values).__name__} is not a column of event times.", _TAKES)
    unit, steps = np.datetime_data(found.dtype)
    if unit == "generic" or steps != 1:
        raise InvalidArgument(f"{found.dtype} is not a column of event times in a common unit.", _COMMON)
    if isinstance(found, np.ma.MaskedArray):
        found = found.filled(np.datetime64("NaT"))
    counts = _within(np, found).astype("datetime64[us]", copy=False).view(np.int64)
    if not len(counts) or (counts.min() >= LOWEST and counts.max() <= HIGHEST):
        return counts, None
    return counts, (counts >= LOWEST) & (counts <= HIGHEST)


def _from_arrow(values: Any) -> Any:
    """Return a column of Arrow, pandas, or of whoever else can give it as Arrow's; None for any other."""
    packages = {cls.__module__.partition(".")[0] for cls in type(values).__mro__}
    # Of objects, Arrow would guess what they are.
    pandas = "pandas" in packages and getattr(getattr(values, "dtype", None), "kind", None) == "M"
    if not pandas and not hasattr(values, "__arrow_c_stream__") and not hasattr(values, "__arrow_c_array__"):
        return None
    import pyarrow as pa

    if pandas or not isinstance(values, pa.Array | pa.ChunkedArray):
        try:
            values = pa.array(values) if pandas or hasattr(values, "__arrow_c_array__") else pa.chunked_array(values)
        except (pa.ArrowException, TypeError):
            return None
    if not pa.types.is_timestamp(values.type) or values.type.tz is None:
        raise InvalidArgument(f"{values.type} is not a column of event times with a time zone.", _TAKES)
    return values


def _from_counts(np: Any, moments: Any) -> Any:
    import pyarrow as pa

    counts = moments.cast(pa.int64()).fill_null(_NOT_A_TIME).to_numpy()
    return counts.view(f"datetime64[{moments.type.unit}]")


def _within(np: Any, found: Any) -> Any:
    """Return the column with NaT where a cast to microseconds would wrap around; NumPy does not notice."""
    unit = np.datetime_data(found.dtype)[0]
    if unit == "us" or unit in _FINER:
        return found
    low, high = (np.datetime64(year, unit) for year in _YEARS)
    return np.where((found >= low) & (found <= high), found, np.datetime64("NaT", unit))
