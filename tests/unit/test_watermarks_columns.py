"""Columns of event times: NumPy's and Arrow's, of every unit, with gaps; and what is no such column."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pytrickle.errors import InvalidArgument
from pytrickle.watermarks import SkewAnalyzer, Tracker, event_time
from pytrickle.watermarks.arrays import column
from tests.unit.moments import NOON, SetClock, noon, seconds

ROOT = Path(__file__).parents[2]
DAY = datetime(2026, 3, 2, tzinfo=UTC)


def times(*after_noon: int, unit: str = "us") -> Any:
    base = np.datetime64("2026-03-02T12:00:00", "s")
    return (base + np.array(after_noon, dtype="timedelta64[s]")).astype(f"datetime64[{unit}]")


def arrow(*after_noon: int | None, unit: str = "us", tz: str | None = "UTC") -> pa.Array:
    moments = [None if one is None else noon(one) for one in after_noon]
    return pa.array(moments, pa.timestamp(unit, tz="UTC")).cast(pa.timestamp(unit, tz=tz))


class Polars:
    """A column of a package that pytrickle does not know, which offers it as Arrow's."""

    def __init__(self, values: Any) -> None:
        self._values = pa.chunked_array(values)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._values.__arrow_c_stream__(requested_schema)


def series(*after_noon: int | None, tz: str | None = "UTC", unit: str = "ns") -> pd.Series:
    moments = pd.Series(pd.to_datetime([None if one is None else noon(one) for one in after_noon], utc=True))
    return moments.dt.tz_convert(tz).dt.as_unit(unit)


COLUMNS = {
    **{f"pandas {unit}": series(3, 9, 5, unit=unit) for unit in ("s", "ms", "us", "ns")},
    "pandas in another zone": series(3, 9, 5, tz="America/New_York"),
    "pandas with another index": series(3, 9, 5).set_axis([7, 1, 4]),
    "an index of pandas": pd.DatetimeIndex(series(3, 9, 5)),
    "an array of pandas": series(3, 9, 5).array,
    "pandas over arrow": series(3, 9, 5).astype("timestamp[us, tz=UTC][pyarrow]"),
    "another package's": Polars([arrow(3, 9), arrow(5)]),
    "another byte order": times(3, 9, 5).astype(">M8[us]"),
    "masked nowhere": np.ma.masked_array(times(3, 9, 5), mask=False),
    **{f"numpy {unit}": times(3, 9, 5, unit=unit) for unit in ("s", "ms", "us", "ns")},
    **{f"arrow {unit}": arrow(3, 9, 5, unit=unit) for unit in ("s", "ms", "us", "ns")},
    "a chunked arrow column": pa.chunked_array([arrow(3, 9), arrow(5)]),
    "another zone": arrow(3, 9, 5, tz="Asia/Kolkata"),
    "a column of every second row": times(3, 0, 9, 0, 5, 0)[::2],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_all_kinds_hold_the_same_moments(name: str) -> None:
    generator = event_time(seconds(0))
    assert generator.observe_batch(COLUMNS[name], NOON).tolist() == [False] * 3
    assert generator.emit(NOON) == noon(9)
    assert generator.observe_batch(COLUMNS[name], NOON).tolist() == [True, False, True]


@pytest.mark.parametrize("unit", ["D", "h", "m"])
def test_coarse_units_are_read_as_well(unit: str) -> None:
    generator = event_time(seconds(0))
    generator.observe_batch(np.array(["2026-03-02"], dtype=f"datetime64[{unit}]"), NOON)
    assert generator.emit(NOON) == DAY


def test_nanoseconds_are_rounded_down_on_both_sides_of_1970() -> None:
    counts, usable = column(np.array([-1, 999, 1_000], "datetime64[ns]"))
    assert (counts.tolist(), usable) == ([-1, 0, 1], None)


@pytest.mark.parametrize(
    "gaps",
    [
        np.array(["NaT", "2026-03-02T12:00:05", "NaT"], "datetime64[us]"),
        np.ma.masked_array(times(15, 5, 20), mask=[True, False, True]),
        np.ma.masked_array(times(15, 5, 20, unit="s"), mask=[True, False, True]),
        arrow(None, 5, None),
        pa.chunked_array([arrow(None), arrow(5, None), arrow()]),
        series(None, 5, None),
        series(None, 5, None).astype("timestamp[ns, tz=UTC][pyarrow]"),
        Polars([arrow(None, 5, None)]),
    ],
    ids=["numpy", "masked", "masked seconds", "arrow", "chunked arrow", "pandas", "pandas over arrow", "another"],
)
def test_gaps_are_counted_and_move_nothing(gaps: Any) -> None:
    generator = event_time(seconds(0), start=noon(9))
    assert generator.observe_batch(gaps, NOON).tolist() == [False, True, False]
    assert (generator.emit(NOON), generator.metrics(NOON).unplaced, generator.metrics(NOON).late) == (noon(9), 2, 1)


def test_times_that_no_microsecond_can_hold_do_not_wrap_around() -> None:
    beyond = 2**64 // 10**6 + 1
    far = np.array([beyond, 0, -beyond], dtype="datetime64[s]")
    assert far.astype("datetime64[us]")[0] == np.datetime64("1970-01-01T00:00:00.448384"), "NumPy does not notice"
    generator = event_time(seconds(0), max_ahead=None)
    generator.observe_batch(far, NOON)
    assert generator.emit(NOON) == datetime(1970, 1, 1, tzinfo=UTC)
    assert generator.metrics(NOON).unplaced == 2


def test_what_lies_outside_of_the_calendar_is_not_ahead_of_the_clock_but_no_time_at_all() -> None:
    generator = event_time(clock=SetClock())
    generator.observe_batch(np.array(["20000-01-01", "9000-01-01"], dtype="datetime64[us]"))
    assert (generator.metrics().unplaced, generator.metrics().ahead, generator.emit()) == (1, 1, None)


def test_masked_rows_and_gaps_of_pandas_are_no_arrivals() -> None:
    for arrivals in (np.ma.masked_array(times(1, 2), mask=[False, True]), series(1, None)):
        with pytest.raises(InvalidArgument, match="Not every row has an arrival"):
            event_time().observe_batch(times(1, 2), arrivals)


def test_a_gap_of_pandas_among_single_rows_moves_nothing_and_is_no_moment() -> None:
    generator = event_time(clock=SetClock())
    assert generator.observe(pd.NaT) is False
    assert (generator.metrics().unplaced, generator.emit()) == (1, None)
    with pytest.raises(InvalidArgument, match="NaT is not a datetime"):
        generator.emit(pd.NaT)


@pytest.mark.parametrize("empty", [times(), arrow(), pa.chunked_array([], pa.timestamp("us", "UTC")), series()])
def test_an_empty_column_is_no_row_and_no_sign_of_life(empty: Any) -> None:
    generator = event_time(clock=SetClock())
    assert generator.observe_batch(empty, noon(60)).tolist() == []
    assert (generator.emit(), generator.metrics().rows, generator.is_idle(noon(61))) == (None, 0, True)


def test_a_column_of_gaps_only_moves_nothing() -> None:
    generator = event_time()
    generator.observe_batch(np.array(["NaT"], "datetime64[ns]"), NOON)
    assert generator.emit(NOON) is None


@pytest.mark.parametrize(
    "wrong",
    [
        np.array([1.0]),
        np.array([NOON]),
        [NOON],
        np.array([[1]], dtype="datetime64[s]"),
        pa.array([1]),
        arrow(1, tz=None),
        None,
        series(1, tz=None),
        series(1).astype(object),
        series(1).to_frame(),
        Polars([arrow(1, tz=None)]),
        pa.table({"placed_at": arrow(1)}),
        arrow(1)[0],
        arrow(1).dictionary_encode(),
        times(1)[0],
        np.array(["NaT"], "datetime64"),
        np.array([1], "datetime64[25us]"),
    ],
    ids=[
        *("floats", "objects", "list", "matrix", "arrow integers", "arrow without a zone", "nothing"),
        *("pandas without a zone", "objects of pandas", "a frame", "another without a zone"),
        *("a table", "an arrow value"),
        *("an arrow dictionary", "a value", "a unit that is not said", "steps of 25 microseconds"),
    ],
)
def test_what_is_no_column_of_moments_is_an_error(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="not a column of event times") as caught:
        event_time().observe_batch(wrong)
    assert "Give datetime64" in str(caught.value.hint) or "astype('datetime64[us]')" in str(caught.value.hint)


@pytest.mark.parametrize("arrivals", [times(1), times(1, 2, 3), np.array(["NaT", "2026-03-02"], "datetime64[us]")])
def test_every_row_of_a_column_needs_its_arrival(arrivals: Any) -> None:
    for take in (event_time().observe_batch, SkewAnalyzer().record_batch):
        with pytest.raises(InvalidArgument, match="Not every row has an arrival"):
            take(times(1, 2), arrivals)


def test_a_tracker_judges_columns_too() -> None:
    tracker = Tracker(["a"], start=noon(5), clock=SetClock())
    assert tracker.judge_batch(arrow(4, 5, None)).tolist() == [True, False, False]
    metrics = tracker.metrics()
    assert (metrics.rows, metrics.late, metrics.unplaced) == (3, 1, 1)


def run(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_single_rows_need_neither_numpy_nor_arrow() -> None:
    script = (
        "import sys\n"
        "sys.modules['numpy'] = sys.modules['pyarrow'] = None\n"
        "from datetime import UTC, datetime\n"
        "from pytrickle.errors import PackageMissing\n"
        "from pytrickle.watermarks import event_time\n"
        "generator = event_time()\n"
        "generator.observe(datetime(2026, 3, 2, 12, tzinfo=UTC))\n"
        "print(generator.emit())\n"
        "try: generator.observe_batch([])\n"
        "except PackageMissing as error: print(error, error.hint)\n"
    )
    assert run(script).splitlines() == [
        "2026-03-02 11:59:59+00:00",
        "Columns of event times need NumPy. Install it: pip install 'pytrickle-postgres[arrays]'. "
        "Single rows need nothing.",
    ]
