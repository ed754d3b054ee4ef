"""How durations and moments are read from the command line and written to the screen and to JSON."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from pytrickle.catalog.reports import WatermarkGroupRow
from pytrickle.cli import values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", timedelta(0)),
        ("30 seconds", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("1 minute", timedelta(minutes=1)),
        ("1h 30m", timedelta(minutes=90)),
        ("1h30min", timedelta(minutes=90)),
        ("250ms", timedelta(milliseconds=250)),
        ("1.5 hours", timedelta(minutes=90)),
        ("2 weeks", timedelta(weeks=2)),
        ("00:10:00", timedelta(minutes=10)),
        ("100:00", timedelta(hours=100)),
        ("00:00:00.5", timedelta(milliseconds=500)),
        ("-0", timedelta(0)),
    ],
)
def test_durations_are_read_as_people_write_them(text: str, expected: timedelta) -> None:
    assert values.duration(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "5", "m", "5 parsecs", "5m x", "1 month", "--5m", "5m, 3", "9999999999999 weeks", "00:99:00", "calculated"],
)
def test_what_is_no_duration_is_a_usage_error(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a duration"):
        values.duration(text)


@pytest.mark.parametrize("text", ["-1s", "-1h 30m", " -00:00:01"])
def test_no_duration_is_below_zero(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is below zero"):
        values.duration(text)


def test_the_number_of_a_batch_is_one_that_the_database_knows() -> None:
    assert values.watermark(str(values.BIGINT)) == values.BIGINT
    with pytest.raises(typer.BadParameter, match="numbers go up to 9223372036854775807"):
        values.watermark(str(values.BIGINT + 1))


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=10**6)))
def test_a_written_duration_is_read_back_within_its_smallest_unit(original: timedelta) -> None:
    written = values.length(original)
    smallest = values.duration(f"1 {written.split()[-1]}")
    assert abs(values.duration(written) - original) <= smallest


def test_a_moment_needs_its_utc_offset() -> None:
    with pytest.raises(typer.BadParameter, match="no UTC offset"):
        values.instant("2026-01-01 12:00")
    with pytest.raises(typer.BadParameter, match="is not a moment"):
        values.instant("noon")
    assert values.instant("2026-01-01T13:00+01:00") == datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_infinity_survives_the_way_in_and_out() -> None:
    assert values.moment(values.instant("infinity")) == "infinity"
    assert values.jsonable(values.instant("infinity")) == "infinity"


def test_json_holds_durations_in_seconds_and_moments_in_iso_form() -> None:
    row = WatermarkGroupRow("pipeline", ("orders",), timedelta(minutes=1), datetime(2026, 1, 1, tzinfo=UTC))
    assert json.loads(json.dumps(values.jsonable(row))) == {
        "group_name": "pipeline",
        "sources": ["orders"],
        "tolerance": 60.0,
        "created_at": "2026-01-01T00:00:00+00:00",
        "stale_after": None,
        "on_stale": "warn",
        "idle_after": None,
        "batch_tolerance": None,
    }
