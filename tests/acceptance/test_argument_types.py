"""What has a wrong type in Python is refused by name, in plain words, and nothing is changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pytrickle import errors
from pytrickle.errors import InvalidArgument
from tests.acceptance.conftest import Shop

QUERY = "SELECT id FROM orders"
HOUR = timedelta(hours=1)
WRONG: dict[str, Callable[[Any], object]] = {
    "schedule must be a length of time, not 5": lambda pt: pt.create_stream_table("other", QUERY, schedule=5),
    "refresh_mode must be a text, not 5": lambda pt: pt.create_stream_table("other", QUERY, refresh_mode=5),
    "name must be a text, not 5": lambda pt: pt.create_stream_table(5, QUERY),
    "query must be a text, not 6": lambda pt: pt.alter_stream_table("report", query=6),
    "fuse_ceiling must be a whole number, not 1.5": lambda pt: pt.alter_stream_table("report", fuse_ceiling=1.5),
    "fuse_ceiling must be a whole number, not True": lambda pt: pt.alter_stream_table("report", fuse_ceiling=True),
    "watermark_retention must be a length of time, not 5": lambda pt: pt.alter_stream_table(
        "report", watermark_retention=5
    ),
    "statement_timeout must be a length of time, not 'x'": lambda pt: pt.alter_stream_table(
        "report", statement_timeout="x"
    ),
    "reset must be a list of texts, not 5": lambda pt: pt.alter_stream_table("report", reset=5),
    "cascade must be True or False, not 'yes'": lambda pt: pt.drop_stream_table("report", cascade="yes"),
    "watermark must be a moment, not 'x'": lambda pt: pt.wait_for("report", "x", timedelta(0)),
    "timeout must be a length of time, not 5": lambda pt: pt.wait_for("report", 5, timeout=5),
    "max_staleness must be a length of time, not 'soon'": lambda pt: pt.assert_fresh("report", "soon"),
    "name must be a text, not 7": lambda pt: pt.refresh(7),
    "limit must be a whole number, not 'x'": lambda pt: pt.history(limit="x"),
    "limit must be a whole number, not 1.5": lambda pt: pt.alerts(1.5),
    "status must be a text, not 5": lambda pt: pt.late_rows("orders", 5),
    "tolerance must be a length of time, not 'x'": lambda pt: pt.create_watermark_group("g", ["orders"], tolerance="x"),
    "sources must be a list of texts, not 5": lambda pt: pt.create_watermark_group("g", 5),
    "sources must be a list of texts, not [5]": lambda pt: pt.create_watermark_group("g", [5]),
    "source must be a text, not 5": lambda pt: pt.advance_watermark(5, 5),
    "reason must be a text, not 5": lambda pt: pt.gate_source("orders", 5),
    "stale_after must be a length of time, not 5": lambda pt: pt.set_source_limits("orders", stale_after=5),
    "lag must be a length of time, not 'x'": lambda pt: pt.set_alert_limits("orders", lag="x"),
    "late_ids must be a list of whole numbers, not 'x'": lambda pt: pt.replay_late_rows("orders", "x"),
    "late_ids must be a list of whole numbers, not ['x']": lambda pt: pt.discard_late_rows("orders", ["x"]),
    "isolation must be a text, not 5": lambda pt: pt.create_refresh_group("g", ["report"], isolation=5),
    "max_rows must be a whole number, not 'x'": lambda pt: pt.create_feed("f", "report", max_rows="x"),
    "name must be a text, not 8": lambda pt: pt.explain(8),
    "group must be a text, not 5": lambda pt: pt.watermark_status(5),
}


def test_an_argument_of_a_wrong_type_is_named_in_plain_words(filled: Shop) -> None:
    for sentence, call in WRONG.items():
        with pytest.raises(InvalidArgument, match=f"^{re.escape(sentence)}\\.\n") as refused:
            call(filled.pt)
        assert (refused.value.hint or "").startswith(("Give ", "Put "))
    assert [table.stream_table for table in filled.pt.stream_tables()] == ["public.report"]


def test_what_a_type_allows_or_a_method_knows_better_is_left_to_it(filled: Shop) -> None:
    pt: Any = filled.pt
    pt.alter_stream_table("report", statement_timeout="1 hour", watermark_retention=HOUR, fuse_ceiling=7)
    assert pt.assert_fresh("report", "1 hour") < HOUR
    with pytest.raises(InvalidArgument, match="A stream table has no option 'foo'"):
        pt.create_stream_table("other", QUERY, foo=5)
    with pytest.raises(InvalidArgument, match="sources is a list of names, and 'orders' is one text"):
        pt.create_watermark_group("g", "orders")
    with pytest.raises(InvalidArgument, match="query must not be NULL"):
        pt.create_stream_table("other", None)


@pytest.mark.parametrize("query", ["SELECT o.id, o.id FROM orders AS o", "SELECT 1, 2"])
def test_columns_of_one_name_are_told_to_be_named(filled: Shop, query: str) -> None:
    """In psql, to which the hint led before, such a query runs well."""
    with pytest.raises(errors.QueryRefused, match="specified more than once") as refused:
        filled.pt.create_stream_table("other", query)
    assert (refused.value.hint or "").startswith("Give each column of the query a name of its own")
