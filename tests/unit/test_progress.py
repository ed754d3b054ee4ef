"""What a watermark may be: a moment with an offset, which is never guessed, or the number of a batch."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from pytrickle.errors import InvalidArgument
from pytrickle.progress import sql_type


@pytest.mark.parametrize("given", [datetime(2026, 3, 8), "2026-03-08", " 2026-03-08 12:00 ", "2026-03-08T12:00:00.5"])
def test_a_moment_without_an_offset_is_refused(given: Any) -> None:
    with pytest.raises(InvalidArgument, match="has no UTC offset"):
        sql_type(given)


@pytest.mark.parametrize("given", [date(2026, 3, 8), True, 1.5, b"infinity"])
def test_what_is_no_watermark_is_refused(given: Any) -> None:
    with pytest.raises(InvalidArgument, match="is no watermark") as refused:
        sql_type(given)
    assert refused.value.hint == "Give a datetime with a UTC offset, or a batch number."


@pytest.mark.parametrize(
    "given",
    [datetime(2026, 3, 8, tzinfo=UTC), "2026-03-08T12:00Z", "2026-03-08 12:00+01", "infinity", "8 Mar 2026 UTC"],
)
def test_a_moment_with_an_offset_is_one(given: Any) -> None:
    assert sql_type(given) == "timestamp with time zone"
