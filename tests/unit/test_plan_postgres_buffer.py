"""Few buffered changes are read without those that cancel each other, where that can change no answer."""

from dataclasses import replace

import pytest

from pytrickle.catalog.definition import MOST_NETTED, ChangeRange
from pytrickle.cut import Cut
from pytrickle.plan.algebra.relation import Version
from pytrickle.plan.postgres.buffer import changes_query, netted_changes
from tests.unit.chain import definition

CUT = Cut("1:1:", "1", 0, "0/1")
NARROW = replace(definition().source(1), used=("k", "x"))


@pytest.mark.parametrize(
    ("version", "delta", "future", "netted"),
    [
        (Version.DELTA, MOST_NETTED, 0, True),
        (Version.DELTA, MOST_NETTED - 1, 1, True),
        (Version.DELTA, MOST_NETTED, 1, False),
        (Version.PAST, 5, 0, True),
        # What came before the new frontier and went after it is in the new state, and no longer in the table.
        (Version.PAST, 5, 1, False),
        (Version.FUTURE, 0, 5, False),
    ],
)
def test_few_changes_are_netted_where_nothing_lies_beyond(
    version: Version, delta: int, future: int, netted: bool
) -> None:
    change_range = ChangeRange(1, CUT, CUT, delta, future)
    plain = changes_query(NARROW, version, change_range)
    text = netted_changes(NARROW, version, change_range)
    assert plain in text and (text != plain) is netted


def test_changes_of_a_source_that_is_read_with_all_its_columns_are_read_as_they_are() -> None:
    change_range = ChangeRange(1, CUT, CUT, 5, 0)
    source = definition().source(1)
    assert netted_changes(source, Version.DELTA, change_range) == changes_query(source, Version.DELTA, change_range)


def test_changes_without_any_column_are_netted_as_a_whole() -> None:
    counted = replace(NARROW, used=())
    assert "PARTITION BY CAST(ROW() AS text)" in netted_changes(counted, Version.DELTA, ChangeRange(1, CUT, CUT, 2, 0))
